//! A release that `.ci/release` makes of programs that are there, and the installer, which refuses any changed byte of it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::tree::root;

/// In the place of each program: it says which it is, and writes a man page and completions.
const PROGRAM: &str = r##"#!/bin/sh
name=$(basename "$0")
case $1 in
    man) echo ".TH $name" >"$2/$name.1" ;;
    completions) echo "# $name in $2" ;;
    *) echo "$name 0" ;;
esac
"##;

/// A release, and the keys of two people: one may sign it.
struct Release {
    dir: TempDir,
}

impl Release {
    fn made(steps: &[&str]) -> Release {
        let release = Release { dir: tempfile::tempdir().expect("there is room") };
        let bin = release.path("programs");
        fs::create_dir(&bin).expect("there is room");
        for program in ["clawmeshd", "clawmesh", "clawmesh-testnet"] {
            fs::write(bin.join(program), PROGRAM).expect("there is room");
            let rights = fs::Permissions::from_mode(0o755);
            fs::set_permissions(bin.join(program), rights).expect("it is ours");
        }
        for person in ["maker", "stranger"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", person, "-f"]);
            let made = keygen.arg(release.path(person)).status().expect("it can be run");
            assert!(made.success());
        }
        let key = fs::read_to_string(release.path("maker.pub")).expect("a public key");
        let line = format!("release@clawmesh namespaces=\"clawmesh-release\" {key}");
        fs::write(release.path("signers"), line).expect("there is room");
        if !steps.is_empty() {
            release.step("maker", steps);
        }
        release
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn step(&self, signer: &str, steps: &[&str]) {
        let mut command = Command::new("bash");
        command.arg(root().join(".ci/release")).args(steps);
        command.env("OUT", self.path("out")).env("BIN", self.path("programs"));
        command.env("SIGN_KEY", self.path(signer)).env_remove("TARGET");
        let Output { status, stdout, stderr } = command.output().expect("there is bash");
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{steps:?}: {out}{err}");
    }

    fn install(&self, more: &[&str]) -> Output {
        let mut command = Command::new("sh");
        command.arg(root().join("packaging/install.sh")).arg("--from").arg(self.path("out"));
        command.arg("--to").arg(self.path("prefix")).args(["--target", "x86_64-unknown-linux-gnu"]);
        command.args(more).output().expect("there is sh")
    }

    fn signed(&self) -> Vec<String> {
        vec!["--signers".to_owned(), self.path("signers").display().to_string()]
    }

    fn installs(&self) -> Result<(), String> {
        let signed = self.signed();
        let words: Vec<&str> = signed.iter().map(String::as_str).collect();
        self.result(&words)
    }

    fn result(&self, more: &[&str]) -> Result<(), String> {
        let output = self.install(more);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(error) }
    }

    fn is_installed(&self) -> bool {
        self.path("prefix").exists()
    }
}

/// A program that the tests need not have; `.ci/run` sees to it that there are all.
fn missing() -> Option<&'static str> {
    let is_missing = |program: &&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|output| output.status.success())
    };
    ["ssh-keygen", "tar", "gzip", "sha256sum", "bash"].into_iter().find(is_missing)
}

/// The file with one bit of one byte turned round.
fn changed(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[at] ^= 1;
    changed
}

#[test]
fn a_release_is_installed_and_one_changed_byte_of_it_is_not() {
    if let Some(program) = missing() {
        eprintln!("skipped: there is no {program} here");
        return;
    }
    let release = Release::made(&["stage", "tar", "manifest", "sign"]);
    let out = release.path("out");
    let tar = the_archive(&out);
    let (manifest, signature) = (out.join("MANIFEST"), out.join("MANIFEST.sig"));
    for file in [&tar, &manifest, &signature] {
        let bytes = fs::read(file).expect("it is there");
        let last = bytes.len() - 1;
        // The frame around a signature is no part of it.
        let places = [last / 4, last / 3, last / 2, last * 2 / 3];
        let ends = if file == &signature { vec![] } else { vec![0, 1, 4, last - 1, last] };
        for at in places.into_iter().chain(ends) {
            fs::write(file, changed(&bytes, at)).expect("it is ours");
            let refused = release.installs();
            assert!(refused.is_err(), "byte {at} of {}", file.display());
            assert!(!release.is_installed(), "byte {at} of {}", file.display());
        }
        let cut = &bytes[..last];
        fs::write(file, cut).expect("it is ours");
        if file != &signature {
            assert!(release.installs().is_err(), "{} without its last byte", file.display());
        }
        fs::remove_file(file).expect("it is ours");
        assert!(release.installs().is_err(), "{} is not there", file.display());
        fs::write(file, bytes).expect("it is ours");
    }
    assert!(!release.is_installed());
    assert_eq!(release.installs(), Ok(()));
    let program = release.path("prefix/bin/clawmeshd");
    let said = Command::new(&program).arg("--version").output().expect("it can be run");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "clawmeshd 0\n");
    assert!(release.path("prefix/share/man/man1/clawmesh.1.gz").exists());
}

#[test]
fn only_a_signer_that_is_named_makes_a_release() {
    if let Some(program) = missing() {
        eprintln!("skipped: there is no {program} here");
        return;
    }
    let release = Release::made(&["stage", "tar", "manifest", "sign"]);
    release.step("stranger", &["sign"]);
    let refused = release.installs().expect_err("a stranger signed it");
    assert!(refused.contains("not signed by release@clawmesh"), "{refused}");
    let refused = release.result(&[]).expect_err("nobody is named");
    assert!(refused.contains("--signers FILE"), "{refused}");
    // A signature of the right one for something else is none.
    fs::remove_file(release.path("out/MANIFEST.sig")).expect("it is ours");
    let mut sign = Command::new("ssh-keygen");
    sign.args(["-q", "-Y", "sign", "-n", "file", "-f"]).arg(release.path("maker"));
    assert!(sign.arg(release.path("out/MANIFEST")).status().expect("it can be run").success());
    assert!(release.installs().is_err(), "signed for another purpose");
    assert!(!release.is_installed());
    // Bytes that a manifest does not name are refused without a signature, too.
    let archive = the_archive(&release.path("out"));
    let bytes = fs::read(&archive).expect("it is there");
    fs::write(&archive, changed(&bytes, bytes.len() / 2)).expect("it is ours");
    let refused = release.result(&["--unsigned"]).expect_err("another archive");
    assert!(refused.contains("is not the one of the manifest"), "{refused}");
    fs::write(&archive, bytes).expect("it is ours");
    assert_eq!(release.result(&["--unsigned"]), Ok(()));
}

#[test]
fn folders_that_are_there_keep_their_rights_and_links_to_folders_stay() {
    if let Some(program) = missing() {
        eprintln!("skipped: there is no {program} here");
        return;
    }
    let release = Release::made(&["stage", "tar", "manifest", "sign"]);
    let (prefix, elsewhere) = (release.path("prefix"), release.path("elsewhere"));
    let closed = |folder: &Path| {
        fs::create_dir(folder).expect("there is room");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
    };
    closed(&prefix);
    closed(&prefix.join("bin"));
    closed(&elsewhere);
    symlink(&elsewhere, prefix.join("share")).expect("there is room");
    // An older program, and a link where a new one goes: to a file that is no part of this.
    let other = release.path("other");
    fs::write(&other, "not ours").expect("there is room");
    symlink(&other, prefix.join("bin/clawmesh")).expect("there is room");
    fs::write(prefix.join("bin/clawmeshd"), "an older one").expect("there is room");

    assert_eq!(release.installs(), Ok(()));

    let rights =
        |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    for folder in [&prefix, &prefix.join("bin"), &elsewhere] {
        assert_eq!(rights(folder), 0o700, "{}", folder.display());
    }
    let is_link = |path: &Path| fs::symlink_metadata(path).expect("it is there").is_symlink();
    assert!(is_link(&prefix.join("share")), "the link to the folder is gone");
    assert_eq!(rights(&elsewhere.join("man/man1/clawmeshd.1.gz")), 0o644);
    assert_eq!(rights(&elsewhere.join("man/man1")), 0o755, "a new folder is for all users");
    for program in ["clawmeshd", "clawmesh"] {
        let program = prefix.join("bin").join(program);
        assert!(!is_link(&program), "{}", program.display());
        assert_eq!(rights(&program), 0o755, "{}", program.display());
    }
    assert_eq!(fs::read_to_string(other).expect("it is there"), "not ours");
    let left = fs::read_dir(prefix.join("bin")).expect("a folder").count();
    assert_eq!(left, 3, "three programs, and nothing half made");
}

#[test]
fn a_manifest_says_that_its_tree_was_changed() {
    for program in ["git", "ssh-keygen"] {
        if Command::new(program).arg("--help").output().is_err() {
            eprintln!("skipped: there is no {program} here");
            return;
        }
    }
    let release = Release::made(&[]);
    let tree = release.path("tree");
    for folder in [".ci", "packaging"] {
        fs::create_dir_all(tree.join(folder)).expect("there is room");
    }
    for file in [".ci/release", "packaging/install.sh", "Cargo.toml"] {
        fs::copy(root().join(file), tree.join(file)).expect("there is room");
    }
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&tree).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        let output = git.args(words).output().expect("it can be run");
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "all of it"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let said = || {
        let mut command = Command::new("bash");
        command.arg(tree.join(".ci/release")).arg("manifest").env("OUT", release.path("made"));
        assert!(command.output().expect("there is bash").status.success());
        let manifest = fs::read_to_string(release.path("made/MANIFEST")).expect("it is there");
        manifest.lines().nth(1).expect("a second line").to_owned()
    };
    assert_eq!(said(), format!("commit {commit}"));
    fs::write(tree.join("new"), "").expect("there is room");
    assert_eq!(said(), format!("commit {commit}-dirty"), "a file that Git does not know");
    fs::remove_file(tree.join("new")).expect("it is ours");
    fs::write(tree.join("packaging/install.sh"), "exit 0").expect("it is ours");
    assert_eq!(said(), format!("commit {commit}-dirty"), "a file that was changed");
}

fn the_archive(out: &Path) -> PathBuf {
    let version = crate::tree::table(&root().join("Cargo.toml"));
    let version = version["workspace"]["package"]["version"].as_str().expect("a version");
    out.join(format!("clawmesh-{version}-x86_64-unknown-linux-gnu.tar.gz"))
}

#[test]
fn the_same_programs_make_the_same_archive() {
    if let Some(program) = missing() {
        eprintln!("skipped: there is no {program} here");
        return;
    }
    let release = Release::made(&["stage", "tar"]);
    let archive = the_archive(&release.path("out"));
    let once = fs::read(&archive).expect("it is there");
    fs::remove_file(&archive).expect("it is ours");
    release.step("maker", &["stage", "tar"]);
    assert!(fs::read(&archive).expect("it is there") == once, "the archives differ");
}

#[test]
fn a_package_brings_unit_settings_man_pages_and_completions() {
    for program in ["dpkg-deb", "ssh-keygen"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {program} here");
            return;
        }
    }
    let release = Release::made(&["stage", "deb"]);
    let package = fs::read_dir(release.path("out")).expect("a folder").find_map(|entry| {
        let path = entry.expect("an entry").path();
        path.extension().is_some_and(|kind| kind == "deb").then_some(path)
    });
    let package = package.expect("a package");
    let dpkg = |arguments: &[&str]| {
        let output = Command::new("dpkg-deb").args(arguments).arg(&package).output();
        String::from_utf8(output.expect("it can be run").stdout).expect("text")
    };
    let listed = dpkg(&["--contents"]);
    let expect = [
        ("-rwxr-xr-x root/root", "./usr/bin/clawmeshd"),
        ("-rwxr-xr-x root/root", "./usr/bin/clawmesh"),
        ("-rw-r--r-- root/root", "./usr/lib/systemd/system/clawmeshd.service"),
        ("-rw-r--r-- root/root", "./usr/share/man/man1/clawmeshd.1.gz"),
        ("-rw-r--r-- root/root", "./usr/share/bash-completion/completions/clawmesh"),
        ("-rw-r--r-- root/root", "./usr/share/zsh/vendor-completions/_clawmeshd"),
        ("-rw-r--r-- root/root", "./usr/share/fish/vendor_completions.d/clawmesh.fish"),
        // It may hold a ticket.
        ("-rw------- root/root", "./etc/clawmesh/clawmeshd.env"),
    ];
    for (rights, file) in expect {
        let found = |line: &str| line.starts_with(rights) && line.ends_with(&format!(" {file}"));
        assert!(listed.lines().any(found), "{rights} {file}:\n{listed}");
    }
    let unit =
        fs::read_to_string(release.path("out/stage/usr/lib/systemd/system/clawmeshd.service"));
    let unit = unit.expect("the unit is staged");
    assert!(unit.contains("\nExecStart=/usr/bin/clawmeshd up\n"), "{unit}");
    assert!(dpkg(&["--info"]).contains("Depends: libc6 (>= 2.31)"), "the glibc of Debian 11");
}
