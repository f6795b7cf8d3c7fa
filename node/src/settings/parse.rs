//! Values of settings, each parsed once.

use std::{
    fs::File,
    io::{self, Read},
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use mesh::{
    limits::RETENTION_MIN,
    name::id::{KeyPrint, parse_hex},
};
use net::{Address, AddressError};
use zeroize::Zeroizing;

use super::error::{Result, SettingsError, bad};
use crate::{
    files::group::Group,
    invitation::Join,
    limits::{NODE_NAME_BYTES_MAX, TAKEOVER_AFTER_MAX, TAKEOVER_AFTER_MIN, TICKET_FILE_BYTES_MAX},
};

/// Where other nodes connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// At this address.
    At(SocketAddr),
    /// At this port of loopback, and of the addresses that face the nodes by whose tickets this one joined.
    Auto(u16),
}

pub(super) fn home(flag: &'static str) -> Result<PathBuf> {
    etcetera::home_dir().map_err(|_| SettingsError::NoHome(flag))
}

pub(super) fn group(name: &str) -> Result<Group> {
    let unknown = "this machine has no such group: `groupadd` makes one";
    match Group::find(name) {
        Ok(group) => group.ok_or_else(|| bad("group", &name.escape_debug().to_string(), unknown)),
        Err(error) => Err(bad("group", &name.escape_debug().to_string(), error.to_string())),
    }
}

pub(super) fn has_host_and_port(flag: &'static str, value: &str) -> Result<()> {
    let good = value
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if good { Ok(()) } else { Err(bad(flag, value, "write HOST:PORT, such as 127.0.0.1:9229")) }
}

/// `auto:PORT`, or an address.
pub(super) fn where_to_listen(value: &str) -> Result<Listen> {
    match value.strip_prefix("auto:").map(str::parse) {
        Some(Ok(port)) => Ok(Listen::Auto(port)),
        Some(Err(_)) => Err(bad("listen", value, "write auto:PORT, such as auto:9231")),
        None => socket_address("listen", value).map(Listen::At),
    }
}

/// An address of this node as others have it.
pub(super) fn reached_at(value: &str) -> Result<Address> {
    value.parse().map_err(|error: AddressError| bad("reached-at", value, error.to_string()))
}

/// Where to take links over WebSocket.
pub(super) fn web_address(value: &str) -> Result<SocketAddr> {
    socket_address("listen-ws", value)
}

fn socket_address(flag: &'static str, value: &str) -> Result<SocketAddr> {
    has_host_and_port(flag, value)?;
    let found = value.to_socket_addrs().map_err(|error| bad(flag, value, error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| bad(flag, value, "the host has no address"))
}

pub(super) fn node_name(name: String) -> Result<String> {
    let good = !name.trim().is_empty()
        && name.len() <= NODE_NAME_BYTES_MAX
        && !name.chars().any(char::is_control);
    if good {
        Ok(name)
    } else {
        let why = format!("write 1 to {NODE_NAME_BYTES_MAX} bytes without control characters");
        Err(bad("name", &name.escape_debug().to_string(), why))
    }
}

pub(super) fn takeover(value: &str) -> Result<Duration> {
    let parsed = duration(value)
        .ok_or_else(|| bad("takeover-after", value, "write a time such as 1.5s or 800ms"))?;
    if (TAKEOVER_AFTER_MIN..=TAKEOVER_AFTER_MAX).contains(&parsed) {
        Ok(parsed)
    } else {
        let why = format!("choose {TAKEOVER_AFTER_MIN:?} to {TAKEOVER_AFTER_MAX:?}");
        Err(bad("takeover-after", value, why))
    }
}

/// How long something is kept; `None`: for ever. `shown` is the flag's value.
pub(super) fn retention(flag: &'static str, shown: &str, value: &str) -> Result<Option<Duration>> {
    if value == "forever" {
        return Ok(None);
    }
    // The engine keeps everything for as long in any case.
    let parsed = duration(value).filter(|time| *time >= RETENTION_MIN);
    let why = "write a time such as 30d or 12h, at least 1h; or forever";
    parsed.map(Some).ok_or_else(|| bad(flag, shown, why))
}

/// The origin of web pages, as browsers write it.
pub(super) fn origin(value: &str) -> Result<String> {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    let good = rest.is_some_and(|host| {
        !host.is_empty()
            && host.chars().all(|c| c.is_ascii_graphic() && !c.is_ascii_uppercase())
            && !host.contains(['/', '?', '#', '@', '*', ','])
    });
    if good {
        Ok(value.to_owned())
    } else {
        Err(bad("http-origin", value, "write it as browsers do, such as https://example.org"))
    }
}

/// A name of this node in URLs.
pub(super) fn host(value: &str) -> Result<String> {
    let good = !value.is_empty()
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if good {
        Ok(value.to_ascii_lowercase())
    } else {
        Err(bad("http-host", value, "write a name without port, such as node.example.org"))
    }
}

pub(super) fn operator(value: &str) -> Result<KeyPrint> {
    let print = parse_hex(value).map(KeyPrint);
    print.ok_or_else(|| bad("operators", value, "write 32 hex digits, as clawmeshd keys list does"))
}

pub(super) fn proxy(value: &str) -> Result<IpAddr> {
    value.parse().map_err(|_| bad("trusted-proxy", value, "write an address such as 10.0.0.1"))
}

/// A number and its unit: `ms`, `s`, `m`, `h` or `d`; without one, seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let units =
        [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0), ("", 1.0)];
    let (number, seconds) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)))?;
    let number = number.trim();
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// A ticket, or where it is: `@FILE`, or `-` for standard input. Its text is a secret, and a command line is
/// seen by all users of the machine.
/// A number of bytes, with `KiB`, `MiB`, `GiB` or nothing behind it.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let (number, bits) = unit.unwrap_or((text, 0));
    let number = number.trim();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(1 << bits)
}

pub(super) fn ticket(text: &str, stdin: &mut impl Read) -> Result<Join> {
    let text = if let Some(file) = text.strip_prefix('@') {
        let opened = File::open(file).and_then(|mut from| read_ticket(&mut from));
        opened.map_err(|error| bad("join", text, error.to_string()))?
    } else if text == "-" {
        read_ticket(stdin).map_err(|error| bad("join", text, error.to_string()))?
    } else {
        Zeroizing::new(text.to_owned())
    };
    text.parse().map_err(SettingsError::Ticket)
}

fn read_ticket(from: &mut impl Read) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    from.take(TICKET_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::Ticket;

    #[test]
    fn a_ticket_is_given_or_read_and_its_text_is_never_quoted() {
        let word = Ticket::new(
            mesh::MeshSecret::new([7; 32], mesh::name::id::NodeId([3; 32])),
            mesh::name::id::NodeId([3; 32]),
            vec!["127.0.0.1:1".parse().unwrap()],
        )
        .to_text();
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("ticket");
        std::fs::write(&file, format!("{word}\n")).unwrap();
        let at = format!("@{}", file.display());
        for (text, stdin) in [(word.as_str(), ""), (&at, ""), ("-", &format!(" {word}\n"))] {
            let Join::Ticket(read) = ticket(text, &mut stdin.as_bytes()).unwrap() else {
                panic!("it is a ticket")
            };
            assert_eq!(read.to_text(), word);
        }
        let missing = ticket("@/no/such/file", &mut io::empty()).unwrap_err().to_string();
        assert!(missing.contains("--join @/no/such/file"), "{missing}");
        std::fs::write(&file, "clawmesh1secret").unwrap();
        for damaged in
            [ticket(&at, &mut io::empty()), ticket("-", &mut "clawmesh1secret".as_bytes())]
        {
            let text = damaged.unwrap_err().to_string();
            assert!(text.contains("damaged") && !text.contains("secret"), "{text}");
        }
    }
}
