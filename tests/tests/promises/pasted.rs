//! The commands of the front door, pasted as they stand: each block of a page in turn, in a fresh home.
//!
//! A comment before a block says what is special about it: `until Ctrl-C` (it runs beside those that follow),
//! `on the second machine` (with a home of its own, and the ticket that the block before printed at its standard
//! input), `skipped: WHY`. The ports of a node are free ones, so its address is another one in the blocks.

use std::{
    env, fmt, fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use testnet::binary;

use crate::{
    end_to_end::{SOON, machine},
    tree::{files, read, root},
};

/// The daemon's addresses that pages name, and those of its flags here.
const HTTP: &str = "127.0.0.1:9230";
const LISTEN: &str = "0.0.0.0:9231";
const FREE: &str = "127.0.0.1:0";

/// The node's own program, in the place of the one that cargo would build first.
const BUILT: &str = "cargo run --release --bin clawmeshd -- ";

/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Commands that a page gives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    line: usize,
    text: String,
    /// The words of the comment before it.
    said: String,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}:\n{}", self.line, self.text)
    }
}

impl Block {
    fn skipped(&self) -> Option<&str> {
        self.said.strip_prefix("skipped: ")
    }

    fn is_of_a_node(&self) -> bool {
        self.text.contains("clawmeshd up") || self.text.contains(BUILT)
    }

    /// The only one that the page starts without a directory of its own is the node of its machine.
    fn takes_the_place_of_a_node(&self) -> bool {
        self.is_of_a_node() && !self.text.contains("--data-dir")
    }
}

/// All blocks of commands of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut said, mut block): (String, Option<Block>) = (String::new(), None);
    for (line, text) in (1..).zip(page.lines()) {
        match (&mut block, text.trim_start()) {
            (Some(_), "```") => found.extend(block.take()),
            (Some(block), _) => block.text.extend([text, "\n"]),
            (None, "```bash" | "```sh") => {
                block = Some(Block { line, text: String::new(), said: std::mem::take(&mut said) });
            }
            (None, text) => {
                let comment = text.strip_prefix("<!-- ").and_then(|text| text.strip_suffix(" -->"));
                said = comment.unwrap_or_default().to_owned();
            }
        }
    }
    found
}

/// A process that goes on beside the others; killed when it is dropped.
struct Beside {
    block: Block,
    child: Child,
    out: Receiver<String>,
    heard: String,
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Beside {
    /// Waits until it has printed this.
    fn says(&mut self, wanted: &str) {
        let deadline = Instant::now() + SOON;
        while !self.heard.contains(wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.out.recv_timeout(left) {
                Ok(line) => self.heard.push_str(&line),
                Err(_) => panic!("{}does not say {wanted:?}, but:\n{}", self.block, self.heard),
            }
        }
    }

    /// Ctrl-C, and it ends in good order.
    fn interrupted(mut self) {
        let running = self.child.try_wait().expect("it can be asked");
        assert_eq!(running, None, "{}ended by itself", self.block);
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &pid]).status().expect("there is kill");
        assert!(told.success(), "{}", self.block);
        let status = self.ended();
        let is_well = status.success() || !self.block.is_of_a_node();
        assert!(is_well, "{}ended with {status}", self.block);
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status;
            }
            assert!(Instant::now() < deadline, "{}does not end", self.block);
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Two machines of a reader: homes, and programs in PATH.
struct Reader {
    dir: tempfile::TempDir,
    page: &'static str,
    /// Where the node of the first machine serves HTTP.
    http: String,
    beside: Vec<Beside>,
    /// The standard output of the block before.
    printed: String,
    /// Lines, and why.
    skipped: Vec<(usize, String)>,
}

impl Reader {
    fn of(page: &'static str) -> Reader {
        let dir = tempfile::tempdir().expect("there is room");
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).expect("there is room");
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, bin.join(name)).expect("there is room");
        };
        link(&binary::fresh().unwrap_or_else(|error| panic!("{error}")), "clawmeshd");
        let client = client();
        link(&client, "clawmesh");
        link(&client, "clawchat");
        // A node that refuses is a failure here, and not only a text.
        let curl = format!("#!/bin/sh\nPATH='{}' exec curl --fail \"$@\"\n", path_of_the_system());
        fs::write(bin.join("curl"), curl).expect("there is room");
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join("curl"), rights).expect("it is ours");
        for machine in ["first", "second"] {
            fs::create_dir(dir.path().join(machine)).expect("there is room");
        }
        let (http, printed) = (HTTP.to_owned(), String::new());
        Reader { dir, page, http, beside: Vec::new(), printed, skipped: Vec::new() }
    }

    /// Runs every block, and says which it did not.
    fn pastes_all(mut self) -> Vec<(usize, String)> {
        let page = read(&root().join(self.page));
        let blocks = blocks(&page);
        assert!(blocks.len() > 5, "the blocks of {} were found", self.page);
        for block in blocks {
            self.pastes(block);
        }
        for beside in self.beside.drain(..).rev() {
            beside.interrupted();
        }
        self.skipped
    }

    fn pastes(&mut self, block: Block) {
        let why = match block.skipped() {
            Some(why) => Some(why),
            None => self.lacks(&block),
        };
        if let Some(why) = why {
            self.skipped.push((block.line, why.to_owned()));
        } else if block.said.starts_with("until Ctrl-C") {
            self.starts(block);
        } else {
            assert_eq!(block.said, "", "{block}");
            self.runs(&block);
        }
    }

    /// A program that a machine may be without.
    fn lacks(&self, block: &Block) -> Option<&'static str> {
        let is_here = |name: &str| {
            Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success())
        };
        let needed = [("curl ", "needs curl"), ("python3 ", "needs Python")];
        let mut missing = needed
            .iter()
            .filter(|(word, _)| block.text.contains(word) && !is_here(word.trim_end()));
        missing.next().map(|(_, why)| *why)
    }

    fn shell(&self, machine: &str, script: &str) -> Command {
        let home = self.dir.path().join(machine);
        let path = format!("{}:{}", self.dir.path().join("bin").display(), path_of_the_system());
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]).current_dir(&home).env_clear();
        command.env("HOME", home).env("PATH", path).env("USER", "reader").stdin(Stdio::null());
        command
    }

    fn here(&self, text: &str) -> String {
        text.replace(HTTP, &self.http).replace(LISTEN, FREE).replace(BUILT, "clawmeshd ")
    }

    fn runs(&mut self, block: &Block) {
        let mut command = self.shell("first", &self.here(&block.text));
        let Output { status, stdout, stderr } = command.output().expect("there is bash");
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let is_well = status.success() && !out.contains("\"isError\":true");
        assert!(is_well, "{}, {block}{status}\n{out}{err}", self.page);
        out.as_ref().clone_into(&mut self.printed);
    }

    fn starts(&mut self, block: Block) {
        let (machine, ticket) = match block.said.as_str() {
            "until Ctrl-C" => ("first", None),
            "until Ctrl-C, on the second machine" => ("second", Some(self.printed.clone())),
            other => panic!("{}, {block}{other:?}", self.page),
        };
        if machine == "first" && block.takes_the_place_of_a_node() {
            let of_a_node = |beside: &Beside| beside.block.takes_the_place_of_a_node();
            if let Some(before) = self.beside.iter().position(of_a_node) {
                self.beside.remove(before).interrupted();
            }
        }
        let text = self.here(block.text.trim_end());
        assert!(!text.contains('\n') || text.contains("\\\n"), "one command: {block}");
        let mut command = self.shell(machine, &format!("exec {text}"));
        if block.is_of_a_node() {
            let free = ["CLAWMESH_TCP", "CLAWMESH_HTTP", "CLAWMESH_LISTEN"];
            command.envs(free.map(|name| (name, FREE)));
        }
        if ticket.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("bash");
        if let (Some(ticket), Some(mut stdin)) = (ticket, child.stdin.take()) {
            stdin.write_all(ticket.as_bytes()).expect("it reads");
        }
        let out = lines(child.stdout.take().expect("it is piped"));
        let mut beside = Beside { block, child, out, heard: String::new() };
        if beside.block.is_of_a_node() {
            self.waits_for_the_node(&mut beside, machine);
        } else {
            // A command that is still on its way to its node ends with the node.
            beside.says("\n");
        }
        self.beside.push(beside);
    }

    fn waits_for_the_node(&mut self, beside: &mut Beside, machine: &str) {
        beside.says("is ready.");
        beside.says("\n  key ");
        if beside.block.text.contains("--join") {
            beside.says("joined mesh");
        }
        if machine == "first" && beside.block.takes_the_place_of_a_node() {
            let (_, rest) = beside.heard.split_once("http://").expect("it serves HTTP");
            rest.split_whitespace().next().unwrap_or_default().clone_into(&mut self.http);
        }
    }
}

/// What a process prints, line by line, read also when nobody asks.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(format!("{line}\n")).is_err() {
                break;
            }
        }
    });
    receiver
}

fn path_of_the_system() -> String {
    env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())
}

/// `clawmesh`, as of the sources: a run of the workspace's tests has built it.
fn client() -> PathBuf {
    let test = env::current_exe().expect("a test is a program");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/promises");
    let client = folder.join("clawmesh");
    if !client.is_file() || binary::is_stale(&client) {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--locked", "--workspace", "--bin", "clawmesh"]).current_dir(root());
        assert!(build.status().expect("cargo is there").success(), "clawmesh is not built");
    }
    client
}

/// Those that the page itself marks; a machine may lack a program besides.
fn marked(skipped: &[(usize, String)]) -> Vec<&str> {
    let all = skipped.iter().map(|(_, why)| why.as_str());
    all.filter(|why| !["needs curl", "needs Python"].contains(why)).collect()
}

#[test]
fn the_commands_of_the_readme_work_as_they_stand() {
    let page = blocks(&read(&root().join("README.md")));
    let first: Vec<&str> = page.iter().map(|block| block.text.trim()).take(2).collect();
    let started = "cargo run --release --bin clawmeshd -- up";
    assert_eq!(first, [started, "cargo test --workspace --locked"], "a node, then the tests");
    let _alone = machine();
    let skipped = Reader::of("README.md").pastes_all();
    for (line, why) in &skipped {
        eprintln!("skipped: README.md, line {line}: {why}");
    }
    let expect = [
        "builds and tests everything",
        "builds",
        "needs Claude Code",
        "needs a terminal",
        "starts three nodes more",
    ];
    assert_eq!(marked(&skipped), expect);
}

#[test]
fn the_commands_of_the_page_of_agents_work_as_they_stand() {
    let _alone = machine();
    let skipped = Reader::of("docs/agents.md").pastes_all();
    for (line, why) in &skipped {
        eprintln!("skipped: docs/agents.md, line {line}: {why}");
    }
    assert_eq!(marked(&skipped), ["asks its user"]);
}

/// Words of a command line, as far as pages have them. `None`: a sign that ends a command.
fn words(line: &str) -> Vec<Option<String>> {
    let (mut found, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for sign in line.chars() {
        match (quote, sign) {
            (Some(open), _) if open == sign => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(sign),
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\n') => found.extend(word.take().map(Some)),
            (None, '|' | ';' | '&' | '>' | '<' | '(' | ')' | '$') => {
                found.extend(word.take().map(Some));
                found.push(None);
            }
            (None, _) => word.get_or_insert_default().push(sign),
        }
    }
    found.extend(word.map(Some));
    found
}

/// Every command of our programs in a text: the program's name first.
fn commands(text: &str) -> Vec<Vec<String>> {
    let whole = words(&text.replace("\\\n", " "));
    let parts = whole.split(Option::is_none);
    let named = parts.filter_map(|part| {
        let words: Vec<String> = part.iter().flatten().cloned().collect();
        let from = words.iter().position(|word| !word.contains('='))?;
        ["clawmesh", "clawmeshd"].contains(&words[from].as_str()).then(|| words[from..].to_vec())
    });
    named.collect()
}

/// The commands of a page for models: of its blocks, and of the code in its lines.
fn commands_of(page: &str) -> Vec<Vec<String>> {
    let mut found = commands_of_blocks(page);
    let mut code = false;
    for line in page.lines() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if !fence && !code {
            found.extend(line.split('`').skip(1).step_by(2).flat_map(commands));
        }
    }
    found
}

/// Those of its blocks alone.
fn commands_of_blocks(page: &str) -> Vec<Vec<String>> {
    let texts = blocks(page).into_iter().map(|block| block.text.replace("\\\n", " "));
    texts.flat_map(|text| text.lines().flat_map(commands).collect::<Vec<_>>()).collect()
}

/// Parses a command line, without running it: help that is asked for after all of its words comes only if each
/// of them was understood.
fn is_understood(program: &Path, words: &[String]) -> Result<(), String> {
    let placeholder = |word: &String| match word.as_str() {
        "HOST:PORT" => "127.0.0.1:1".to_owned(),
        // A host of models.
        "HOST" => "claude".to_owned(),
        word if word.chars().all(|sign| sign.is_ascii_uppercase() || sign == '_') => "1".to_owned(),
        word => word.to_owned(),
    };
    let mut arguments: Vec<String> = words[1..].iter().map(placeholder).collect();
    // Behind `--` everything is text.
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    arguments.truncate(end);
    // The two that hand everything over to another program.
    if arguments.is_empty() {
        return Ok(());
    }
    arguments.push("--help".to_owned());
    let output = Command::new(program).args(&arguments).env_clear().stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn every_command_that_models_are_told_of_exists() {
    let _part = crate::end_to_end::part_of_the_machine();
    let daemon = binary::fresh().unwrap_or_else(|error| panic!("{error}"));
    let client = client();
    let of = |name: &str| if name == "clawmesh" { &client } else { &daemon };
    for page in ["AGENTS.md", "SKILL.md", "README.md", "docs/agents.md", "docs/install.md"] {
        let commands = commands_of(&read(&root().join(page)));
        assert!(commands.len() >= 2, "the commands of {page} were found");
        for words in commands {
            let understood = is_understood(of(&words[0]), &words);
            assert_eq!(understood, Ok(()), "{page}");
        }
    }
    let (mut unknown, mut count) = (Vec::new(), 0);
    for page in files(&root(), "md") {
        for words in commands_of_blocks(&read(&page)) {
            count += 1;
            if let Err(error) = is_understood(of(&words[0]), &words) {
                unknown.push(format!("{}: {error}", page.display()));
            }
        }
    }
    assert!(count > 50, "the commands of all pages were found: {count}");
    assert!(unknown.is_empty(), "{unknown:#?}");
    let wrong = |text: &str| {
        let words = &commands(text)[0];
        is_understood(of(&words[0]), words).is_err()
    };
    assert!(wrong("clawmesh sned lobby hello"), "no such command");
    assert!(wrong("clawmesh send lobby hello --now"), "no such flag");
    assert!(wrong("clawmesh wait lobby --timeout soon"), "no such value");
    assert!(wrong("clawmeshd up --lisen 0.0.0.0:9231"), "no such flag of the daemon");
}

/// A page that is read by a program has its words where that looks for them.
#[test]
fn pages_of_models_are_short_and_found() {
    let skill = read(&root().join("SKILL.md"));
    assert!(skill.starts_with("---\nname: clawmesh\ndescription: "), "its head");
    for page in ["SKILL.md", "AGENTS.md"] {
        assert!(read(&root().join(page)).len() <= 6 * 1024, "{page} is short");
    }
    let marked = files(&root(), "md").into_iter().flat_map(|page| blocks(&read(&page)));
    let odd: Vec<Block> = marked
        .filter(|block| {
            !block.said.is_empty()
                && block.skipped().is_none()
                && !block.said.starts_with("until Ctrl-C")
        })
        .collect();
    assert_eq!(odd, [], "marks that mean nothing");
}
