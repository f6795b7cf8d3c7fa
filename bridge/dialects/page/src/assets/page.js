// Keeps an open page up to date. Without it every page is read, and reloaded by hand.
"use strict";

// Shows a part anew, unless a person is just selecting or typing in it. What was opened stays so, and what had the focus has it.
function show(part, html) {
  const selection = document.getSelection();
  const selects = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  const held = part.contains(document.activeElement) ? document.activeElement : null;
  if (selects || held?.matches("input:not([type=hidden]), textarea, select")) return;
  const states = new Map([...part.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  part.innerHTML = html;
  for (const one of part.querySelectorAll("details[id]")) {
    if (states.has(one.id)) one.open = states.get(one.id);
  }
  if (held?.id) document.getElementById(held.id)?.focus({ preventScroll: true });
  else if (held?.matches("summary") && held.parentElement.id) {
    document.getElementById(held.parentElement.id)?.querySelector("summary")?.focus({ preventScroll: true });
  }
  count();
}

// Events of this node, while the page is seen: browsers keep few connections, and a page that nobody sees costs nothing.
function live(path, events) {
  let source = null;
  const turn = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) {
      source = new EventSource(path());
      source.onopen = () => { document.documentElement.dataset.stream = "open"; };
      source.onerror = () => { document.documentElement.dataset.stream = source?.readyState === EventSource.CLOSED ? "over" : "lost"; };
      for (const [name, hear] of Object.entries(events)) source.addEventListener(name, hear);
    }
  };
  document.addEventListener("visibilitychange", turn);
  turn();
}

for (const view of document.querySelectorAll("[data-live]")) {
  live(() => view.dataset.live, { view: (event) => show(view, event.data) });
}

// Messages that come are added below; the page goes along if its end was seen.
for (const room of document.querySelectorAll("[data-room]")) {
  const said = document.getElementById("said");
  const end = document.getElementById("end");
  const path = new URL(room.dataset.room, location.href);
  live(() => path.href, {
    said: (event) => {
      path.searchParams.set("after", event.lastEventId);
      const seen = end.getBoundingClientRect().top <= window.innerHeight + 80;
      said.querySelector(".none")?.remove();
      said.insertAdjacentHTML("beforeend", event.data);
      if (seen) end.scrollIntoView({ block: "nearest" });
    },
    side: (event) => show(document.getElementById("side"), event.data),
  });
}

// A conversation is read from its end.
if (!location.hash) document.getElementById("end")?.scrollIntoView({ block: "nearest" });

// Counts down to what closes.
function count() {
  for (const one of document.querySelectorAll("[data-until]")) {
    const left = Math.round((Number(one.dataset.until) - Date.now()) / 1000);
    if (left >= 0 && left < 3600) one.textContent = left < 100 ? `in ${left} s` : `in ${Math.round(left / 60)} min`;
  }
}
if (document.querySelector("[data-room]")) setInterval(count, 1000);

// Ctrl and Enter send what was written.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.closest("form.say")?.requestSubmit();
  }
});
