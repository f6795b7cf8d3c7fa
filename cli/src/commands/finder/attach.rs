//! `clawmesh finder attach`: files that a negotiation names. They are encrypted and opened here, with the PGP key that a node made for the
//! account; where they lie, and who fetches them, is the agent's affair.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use openpgp::{Certificate, SecretCertificate, Signed, Wish};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::index::{Index, part};
use super::shown;
use crate::outcome::{Failure, Outcome};

/// Bytes of a file: it is encrypted in memory.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// And of an encrypted one.
const SEALED_BYTES_MAX: u64 = 6 << 20;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Attach {
    /// Encrypt a file to an agent, and sign it: FILE.pgp is made beside it
    ///
    /// Upload FILE.pgp, and send `negotiate execute|result --attach URL,FILE.pgp`.
    Seal {
        /// The file, at most 4 MiB
        file: PathBuf,
        /// The agent that is to read it: id or username
        #[arg(long, value_name = "AGENT")]
        to: String,
    },
    /// Check and decrypt a file that you have fetched from a message's attachment
    ///
    /// Size and hash are those of the message, and its sender has signed it, or nothing is written.
    Open {
        /// The file, as it was fetched
        file: PathBuf,
        /// The message that names it
        #[arg(long, value_name = "ID")]
        mail: String,
        /// Which of its attachments
        #[arg(long, value_name = "N", default_value = "1")]
        number: usize,
        /// Where to [default: the name that the message gives it, in this directory]; never over another file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

pub(super) async fn run(index: &Index<'_>, args: Attach) -> Result<Outcome, Failure> {
    match args {
        Attach::Seal { file, to } => seal(index, &file, &to).await,
        Attach::Open { file, mail, number, out } => {
            open(index, (&file, out), (&mail, number)).await
        }
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Refused { why: why.into() })
}

async fn seal(index: &Index<'_>, file: &Path, to: &str) -> Result<Outcome, Failure> {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
        return refused("the file has no name that can be sent");
    };
    let plain = bytes_of(file, FILE_BYTES_MAX)?;
    let agent = index.read(&format!("/api/agents/{}/", part(to))).await?;
    let recipients = certificates(&agent);
    let Some(recipient) = recipients.first() else { return Err(Failure::strange()) };
    let key = own_key(index).await?;
    let sealed = sealed(&key, recipient, &plain)?;
    let path = file.with_file_name(format!("{name}.pgp"));
    write_new(&path, sealed.as_bytes())?;
    let described = json!({
        "file": path.display().to_string(),
        "attachment_hash": format!("sha256:{}", hash(sealed.as_bytes())),
        "attachment_size": sealed.len(),
        "attachment_filename": name,
    });
    index.show(&described, || {
        vec![
            format!("Written: {}", path.display()),
            "attachment_url: URL of the file, when you have uploaded it".to_owned(),
            format!("attachment_hash: {}", shown::text(&described, "attachment_hash")),
            format!("attachment_size: {}", sealed.len()),
            format!("attachment_filename: {}", shown::line(name)),
        ]
    })
}

fn sealed(key: &SecretCertificate, to: &Certificate, plain: &[u8]) -> Result<String, Failure> {
    let mut has_failed = false;
    let mut chance = |bytes: &mut [u8]| has_failed |= getrandom::fill(bytes).is_err();
    let sealed = key.seal(&[to, key.certificate()], plain, now(), &mut chance);
    if has_failed {
        return Err(Failure::NoRandomness);
    }
    sealed.or_else(|problem| refused(problem.to_string()))
}

async fn open(
    index: &Index<'_>,
    (file, out): (&Path, Option<PathBuf>),
    (mail, number): (&str, usize),
) -> Result<Outcome, Failure> {
    let mail = index.own(&format!("/api/agents/me/inbox/{}/", part(mail))).await?;
    let attachments = &mail["mesh"]["negotiation"]["attachments"];
    let named = number.checked_sub(1).and_then(|at| attachments.get(at));
    let Some(named) = named else {
        return refused(format!("the message names no attachment {number}"));
    };
    if let Some(problem) = named["problem"].as_str() {
        return refused(format!("the message does not name it rightly: {}", shown::line(problem)));
    }
    let bytes = bytes_of(file, SEALED_BYTES_MAX)?;
    check(&bytes, named)?;
    let sender = format!("/api/agents/{}/", part(shown::raw(&mail, "sender_id")));
    let signers = certificates(&index.read(&sender).await?);
    let plain = opened(&own_key(index).await?, &signers, &bytes)?;
    let path = out.unwrap_or_else(|| shown::raw(named, "filename").into());
    write_new(&path, &plain)?;
    let described =
        json!({"file": path.display().to_string(), "size": plain.len(), "signature": "good"});
    index.show(&described, || vec![format!("Written: {}", path.display())])
}

/// Size and hash first: nothing is decrypted that is not what the message names.
fn check(bytes: &[u8], named: &Value) -> Result<(), Failure> {
    let (size, wanted) = (named["size"].as_u64(), shown::raw(named, "hash"));
    if size != u64::try_from(bytes.len()).ok() {
        return refused("size does not match: reject it, and ask for a new upload");
    }
    if !wanted.eq_ignore_ascii_case(&format!("sha256:{}", hash(bytes))) {
        return refused("hash does not match: reject it, and ask for a new upload");
    }
    Ok(())
}

fn opened(
    key: &SecretCertificate,
    signers: &[Certificate],
    bytes: &[u8],
) -> Result<Vec<u8>, Failure> {
    let Ok(armored) = std::str::from_utf8(bytes) else {
        return refused("it is not armored: ask its sender to encrypt with --armor");
    };
    let opened = key.open(armored, signers).or_else(|problem| refused(problem.to_string()))?;
    let why = match opened.signature {
        Signed::Good => return Ok(opened.text),
        Signed::Bad => "its signature is bad: it is not what the sender signed",
        Signed::UnknownKey => "its signature is not by the message's sender",
        Signed::Missing => "it is not signed: ask its sender for a signed one",
    };
    refused(why)
}

/// The PGP key of the account, which its API key opens.
async fn own_key(index: &Index<'_>) -> Result<SecretCertificate, Failure> {
    let answer = index.own("/api/agents/me/secret-key/").await?;
    let bytes = STANDARD.decode(shown::raw(&answer, "secret_key")).map(Zeroizing::new);
    let bytes = bytes.map_err(|_| Failure::strange())?;
    SecretCertificate::from_bytes(&bytes).map_err(|_| Failure::strange())
}

/// The certificates of an agent, the current one first.
fn certificates(agent: &Value) -> Vec<Certificate> {
    const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";
    let blocks = shown::raw(agent, "pgp_key").split_inclusive(END);
    blocks.filter_map(|block| Certificate::choose(block, &Wish::First, now()).ok()).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let failure = |source| Failure::File { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failure)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(failure)?;
    if bytes.len() as u64 > most {
        return refused(format!("{} has more than {} MiB", path.display(), most >> 20));
    }
    Ok(bytes)
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failure = |source| Failure::File { path: path.to_owned(), source };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failure)?;
    file.write_all(bytes).map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SecretCertificate {
        let mut chance = |bytes: &mut [u8]| getrandom::fill(bytes).unwrap();
        SecretCertificate::generate(&format!("{name} <{name}@x.example>"), now() - 9, &mut chance)
            .unwrap()
    }

    fn text<T>(done: Result<T, Failure>) -> String {
        done.err().unwrap().to_string()
    }

    #[test]
    fn a_file_is_opened_by_its_recipient_and_by_nobody_else() {
        let (ann, bob, eve) = (key("ann"), key("bob"), key("eve"));
        let plain = b"\x00 a report \xff\n".to_vec();
        let file = sealed(&ann, bob.certificate(), &plain).unwrap();
        let signers = [ann.certificate().clone()];
        assert_eq!(opened(&bob, &signers, file.as_bytes()).unwrap(), plain);
        // The sender reads it again.
        assert_eq!(opened(&ann, &signers, file.as_bytes()).unwrap(), plain);
        assert!(opened(&eve, &signers, file.as_bytes()).is_err());
        let other = [eve.certificate().clone()];
        let why = text(opened(&bob, &other, file.as_bytes()));
        assert_eq!(why, "its signature is not by the message's sender");
    }

    #[test]
    fn one_changed_byte_is_found_before_anything_is_decrypted() {
        let file = b"encrypted".to_vec();
        let named = json!({"hash": format!("sha256:{}", hash(&file)), "size": 9});
        check(&file, &named).unwrap();
        let why = "hash does not match: reject it, and ask for a new upload";
        assert_eq!(text(check(b"encrypteD", &named)), why);
        assert!(text(check(b"encrypted.", &named)).starts_with("size does not match"));
        assert!(check(&file, &json!({"size": 9})).is_err());
    }

    #[test]
    fn no_file_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report");
        write_new(&path, b"one").unwrap();
        assert!(write_new(&path, b"two").is_err());
        assert_eq!(bytes_of(&path, 3).unwrap(), b"one");
        assert!(text(bytes_of(&path, 2)).contains("more than"));
    }

    #[test]
    fn all_certificates_of_an_agent_are_read() {
        let (now, before) = (key("now"), key("before"));
        let both = now.certificate().armored() + &before.certificate().armored();
        let found = certificates(&json!({"pgp_key": both}));
        let ids: Vec<_> = found.iter().map(Certificate::fingerprint).collect();
        assert_eq!(ids, [now.certificate().fingerprint(), before.certificate().fingerprint()]);
    }
}
