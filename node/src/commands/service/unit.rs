//! The files of services.

use anyhow::{Context, Result};

use super::Scope;

/// Says that the file is ours to change and to remove.
pub(super) const MARK: &str = "Written by `clawmeshd service install`";

/// The unit that packages install, too: one text for both.
const MACHINE: &str = include_str!("../../../../packaging/clawmeshd.service");

/// Its line that is another one here.
const MACHINE_START: &str = "ExecStart=/usr/local/bin/clawmeshd up";

/// A unit of systemd that runs the program with these words: a command, and its flags.
pub(super) fn systemd(scope: Scope, program: &str, words: &[String]) -> Result<String> {
    let words = [program].into_iter().chain(words.iter().map(String::as_str));
    let start = format!("ExecStart={}", words.map(quoted).collect::<Vec<_>>().join(" "));
    let text = match scope {
        Scope::Machine => {
            let (before, after) =
                MACHINE.split_once(MACHINE_START).context("the unit of packages starts a node")?;
            format!("{before}{start}{after}")
        }
        Scope::User => USER.replace("START", &start),
    };
    Ok(format!("# {MARK}: it changes and removes this file.\n{text}"))
}

/// Of the user's manager, which gives a unit fewer walls than the machine's. `%h` is the user's home, `%E` the
/// directory of settings.
const USER: &str = "\
[Unit]
Description=clawmesh node
# A node that cannot start says why; trying for ever would hide it.
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
START
WorkingDirectory=%h
# A variable in each line, such as CLAWMESH_LISTEN=0.0.0.0:9231.
EnvironmentFile=-%E/clawmesh/clawmeshd.env
UMask=0077
# Orderly stopping takes less than 3 s; a large store may take a while to open.
TimeoutStartSec=5min
TimeoutStopSec=15
Restart=on-failure
RestartSec=2
LimitNOFILE=32768
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
";

/// One word of a command line of systemd: it knows quotes, `%` for its specifiers and `$` for variables.
fn quoted(word: &str) -> String {
    let mut text = String::new();
    for sign in word.chars() {
        match sign {
            '"' | '\\' => text.extend(['\\', sign]),
            '%' | '$' => text.extend([sign, sign]),
            _ => text.push(sign),
        }
    }
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-+=:,@%".contains(sign);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("\"{text}\"") }
}

/// The name that launchd knows the service by.
pub(super) const LABEL: &str = "io.clawmesh.clawmeshd";

/// An agent of launchd that does the same. Nobody has tried it on a Mac yet.
pub(super) fn launchd(program: &str, words: &[String]) -> String {
    let words = [program].into_iter().chain(words.iter().map(String::as_str));
    let words: String =
        words.map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {MARK}: it changes and removes this file. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardErrorPath</key>
  <string>/tmp/{LABEL}.log</string>
</dict>
</plist>
"#
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Vec<String> {
        ["up"].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_unit_of_the_machine_is_that_of_packages_but_for_its_command() {
        let flags = flags(&["--listen", "0.0.0.0:9231"]);
        let text = systemd(Scope::Machine, "/opt/claw mesh/clawmeshd", &flags).unwrap();
        let start = "ExecStart=\"/opt/claw mesh/clawmeshd\" up --listen 0.0.0.0:9231\n";
        assert!(text.contains(start), "{text}");
        assert_eq!(text.matches("ExecStart=").count(), 1, "{text}");
        let without = |text: &str| -> Vec<String> {
            let is_kept = |line: &&str| !line.starts_with("ExecStart=") && !line.contains(MARK);
            text.lines().filter(is_kept).map(str::to_owned).collect()
        };
        assert_eq!(without(&text), without(MACHINE));
    }

    #[test]
    fn no_flag_can_be_more_than_one_word() {
        let odd = ["a b", "100%", "$HOME", "\"q\"", "back\\slash", ""];
        let text = systemd(Scope::User, "/usr/bin/clawmeshd", &flags(&odd)).unwrap();
        let line = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        let expect =
            r#"ExecStart=/usr/bin/clawmeshd up "a b" 100%% "$$HOME" "\"q\"" "back\\slash" """#;
        assert_eq!(line, expect);
        assert!(text.contains("\nWantedBy=default.target\n") && text.contains("Type=notify\n"));
    }

    #[test]
    fn an_agent_of_launchd_has_each_word_and_no_markup_of_them() {
        let text = launchd("/usr/local/bin/clawmeshd", &flags(&["--name", "<a & b>"]));
        assert!(text.contains("<string>&lt;a &amp; b&gt;</string>"), "{text}");
        assert_eq!(text.matches("<string>").count(), 6, "label, four words, the log: {text}");
    }
}
