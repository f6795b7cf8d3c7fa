// Keeps an open page up to date. Without it every page is read, and reloaded by hand.
"use strict";

// A view that is shown anew as a whole, unless a person is just selecting something in it.
for (const view of document.querySelectorAll("[data-live]")) {
  const source = new EventSource(view.dataset.live);
  source.addEventListener("view", (event) => {
    const selection = document.getSelection();
    const busy = selection && !selection.isCollapsed && view.contains(selection.anchorNode);
    if (!busy) view.innerHTML = event.data;
  });
}

// Messages that come are added below; the page goes along if its end was seen.
for (const said of document.querySelectorAll("[data-append]")) {
  const source = new EventSource(said.dataset.append);
  const end = document.getElementById("end");
  source.addEventListener("said", (event) => {
    const seen = end.getBoundingClientRect().top <= window.innerHeight + 80;
    said.querySelector(".none")?.remove();
    said.insertAdjacentHTML("beforeend", event.data);
    if (seen) end.scrollIntoView({ block: "nearest" });
  });
}

// A conversation is read from its end.
if (!location.hash) document.getElementById("end")?.scrollIntoView({ block: "nearest" });

// Ctrl and Enter send what was written.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.closest("form.say")?.requestSubmit();
  }
});
