//! An internet of network namespaces: a router in the middle, and places behind routers of all kinds.

use std::{
    env, fs,
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// A network as people have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    FullCone,
    AddressRestricted,
    PortRestricted,
    Symmetric,
    DoubleNat,
    UdpBlocked,
    DialOut,
    Ipv6Only,
    SmallPackets,
    Only443,
    Moving,
}

impl Kind {
    pub(crate) const ALL: [Kind; 11] = [
        Kind::FullCone,
        Kind::AddressRestricted,
        Kind::PortRestricted,
        Kind::Symmetric,
        Kind::DoubleNat,
        Kind::UdpBlocked,
        Kind::DialOut,
        Kind::Ipv6Only,
        Kind::SmallPackets,
        Kind::Only443,
        Kind::Moving,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::FullCone => "full-cone",
            Kind::AddressRestricted => "address-restricted",
            Kind::PortRestricted => "port-restricted",
            Kind::Symmetric => "symmetric",
            Kind::DoubleNat => "double-nat",
            Kind::UdpBlocked => "udp-blocked",
            Kind::DialOut => "dial-out",
            Kind::Ipv6Only => "ipv6-only",
            Kind::SmallPackets => "small-packets",
            Kind::Only443 => "only-443",
            Kind::Moving => "moving",
        }
    }

    /// What its router does, for `nft`; `up` leads to the internet, `down` to the node.
    fn rules(self) -> String {
        let cone = |seen: &str, from: &str| {
            format!(
                "table ip n {{\n set seen {{\n type ipv4_addr; flags dynamic; timeout 1h;\n }}\n \
                 chain after {{\n type nat hook postrouting priority 100;\n {seen}\n oifname \"up\" masquerade\n }}\n \
                 chain before {{\n type nat hook prerouting priority -100;\n iifname \"up\" {from} dnat to {INSIDE}\n }}\n}}\n"
            )
        };
        let masquerade = |how: &str| {
            format!(
                "table ip n {{\n chain after {{\n type nat hook postrouting priority 100;\n oifname \"up\" masquerade {how}\n }}\n}}\n"
            )
        };
        let wall = |more: &str| {
            format!(
                "table inet w {{\n chain onward {{\n type filter hook forward priority 0; policy drop;\n {more}\n \
                 ct state established,related accept\n iifname \"down\" accept\n }}\n}}\n"
            )
        };
        match self {
            Kind::FullCone => cone("", ""),
            Kind::AddressRestricted => {
                cone("oifname \"up\" update @seen { ip daddr }", "ip saddr @seen")
            }
            Kind::PortRestricted | Kind::DoubleNat => masquerade("") + &wall(""),
            Kind::Symmetric => masquerade("fully-random") + &wall(""),
            Kind::UdpBlocked => masquerade("") + &wall("meta l4proto udp drop"),
            Kind::Only443 => {
                let web = "iifname \"down\" meta l4proto udp drop\n iifname \"down\" tcp dport != 443 drop";
                masquerade("") + &wall(web)
            }
            Kind::DialOut => wall(""),
            Kind::Ipv6Only | Kind::SmallPackets | Kind::Moving => String::new(),
        }
    }
}

/// Where a node behind a NAT is.
const INSIDE: &str = "192.168.7.2";

/// The middle, and everything that hangs on it. It goes when this is dropped.
pub(crate) struct Internet {
    /// Before the name of each namespace: this program's own.
    mark: String,
    spaces: Vec<String>,
}

/// Why no namespaces can be made here.
pub(crate) fn possible() -> Result<(), String> {
    for (program, args) in [("ip", &["-V"][..]), ("nft", &["--version"])] {
        let there = Command::new(program).args(args).stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            return Err(format!("there is no `{program}` here"));
        }
    }
    let mut trial = Internet::new("t");
    let made = trial.space("trial").and_then(|space| trial.nft(&space, &Kind::FullCone.rules()));
    made.map_err(|why| format!("namespaces with NAT cannot be made here ({why:#})"))
}

/// Runs a program to its end.
fn sh(program: &str, args: &[&str]) -> Result<()> {
    let done = Command::new(program).args(args).output().with_context(|| program.to_owned())?;
    if !done.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(())
}

impl Internet {
    fn new(more: &str) -> Internet {
        Internet { mark: format!("clawnet{more}{}", std::process::id()), spaces: Vec::new() }
    }

    pub(crate) fn lay() -> Result<Internet> {
        let mut it = Internet::new("");
        let middle = it.space("middle")?;
        it.forward(&middle)?;
        for (nth, name) in (1..).zip(crate::PUBLIC.into_iter().chain([crate::GATE])) {
            let space = it.space(name)?;
            it.wire(&middle, &space, nth, "up")?;
        }
        for (nth, kind) in (11..).zip(Kind::ALL) {
            it.settle(&middle, nth, kind)?;
        }
        Ok(it)
    }

    /// The namespace of a node.
    pub(crate) fn place(&self, name: &str) -> Result<String> {
        let space = format!("{}-{name}", self.mark);
        if self.spaces.contains(&space) { Ok(space) } else { bail!("there is no place {name}") }
    }

    fn space(&mut self, name: &str) -> Result<String> {
        let space = format!("{}-{name}", self.mark);
        sh("ip", &["netns", "add", &space])?;
        self.spaces.push(space.clone());
        sh("ip", &["-n", &space, "link", "set", "lo", "up"])?;
        Ok(space)
    }

    fn forward(&self, space: &str) -> Result<()> {
        for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let path = format!("/proc/sys/net/{file}");
            let write = format!("echo 1 > {path}");
            sh("ip", &["netns", "exec", space, "sh", "-c", &write])?;
        }
        Ok(())
    }

    fn nft(&self, space: &str, rules: &str) -> Result<()> {
        let path = env::temp_dir().join(format!("{space}.nft"));
        fs::File::create(&path)?.write_all(rules.as_bytes())?;
        let done = sh("ip", &["netns", "exec", space, "nft", "-f", &path.display().to_string()]);
        fs::remove_file(&path)?;
        done
    }

    /// A cable from the middle to the device `device` of `space`, with public addresses.
    fn wire(&self, middle: &str, space: &str, nth: u8, device: &str) -> Result<()> {
        self.cable(middle, &format!("v{nth}"), space, device)?;
        let outer = format!("v{nth}");
        for (version, ours, theirs) in [
            ("-4", format!("203.0.{nth}.1"), format!("203.0.{nth}.2/24")),
            ("-6", format!("2001:db8:{nth}::1"), format!("2001:db8:{nth}::2/64")),
        ] {
            let length = if version == "-4" { "24" } else { "64" };
            let ours_at = format!("{ours}/{length}");
            // Without `nodad` an address of IPv6 can be used only after a second.
            let dad: &[&str] = if version == "-6" { &["nodad"] } else { &[] };
            let at = |space: &str, address: &str, device: &str| {
                let args = ["-n", space, version, "addr", "add", address, "dev", device];
                sh("ip", &[&args[..], dad].concat())
            };
            at(middle, &ours_at, &outer)?;
            at(space, &theirs, device)?;
            sh("ip", &["-n", space, version, "route", "replace", "default", "via", &ours])?;
        }
        Ok(())
    }

    fn cable(&self, one: &str, at: &str, other: &str, to: &str) -> Result<()> {
        sh(
            "ip",
            &[
                "link", "add", "name", at, "netns", one, "type", "veth", "peer", "name", to,
                "netns", other,
            ],
        )?;
        sh("ip", &["-n", one, "link", "set", "dev", at, "up"])?;
        sh("ip", &["-n", other, "link", "set", "dev", to, "up"])
    }

    fn settle(&mut self, middle: &str, nth: u8, kind: Kind) -> Result<()> {
        let home = self.space(kind.name())?;
        match kind {
            Kind::Ipv6Only => {
                self.wire(middle, &home, nth, "up")?;
                sh("ip", &["-n", &home, "-4", "addr", "flush", "dev", "up"])
            }
            Kind::SmallPackets => {
                self.wire(middle, &home, nth, "up")?;
                sh("ip", &["-n", &home, "link", "set", "dev", "up", "mtu", "1280"])?;
                sh("ip", &["-n", middle, "link", "set", "dev", &format!("v{nth}"), "mtu", "1280"])
            }
            Kind::Moving => self.wire(middle, &home, nth, "up"),
            Kind::DialOut => {
                let router = self.router(middle, nth, kind)?;
                let (outer, inner) = (format!("203.1.{nth}.1"), format!("203.1.{nth}.2/24"));
                self.behind(&router, &home, &outer, &inner)?;
                let net = format!("203.1.{nth}.0/24");
                let via = format!("203.0.{nth}.2");
                sh("ip", &["-n", middle, "route", "add", &net, "via", &via])
            }
            Kind::DoubleNat => {
                let router = self.router(middle, nth, kind)?;
                let second = self.space("double-nat-inner")?;
                self.forward(&second)?;
                self.cable(&router, "down", &second, "up")?;
                self.addresses(&router, &second, "192.168.8.1", "192.168.8.2/24")?;
                self.nft(&second, &kind.rules())?;
                self.behind(&second, &home, "192.168.7.1", &format!("{INSIDE}/24"))
            }
            Kind::FullCone
            | Kind::AddressRestricted
            | Kind::PortRestricted
            | Kind::Symmetric
            | Kind::UdpBlocked
            | Kind::Only443 => {
                let router = self.router(middle, nth, kind)?;
                self.behind(&router, &home, "192.168.7.1", &format!("{INSIDE}/24"))
            }
        }
    }

    fn router(&mut self, middle: &str, nth: u8, kind: Kind) -> Result<String> {
        let router = self.space(&format!("router-{nth}"))?;
        self.forward(&router)?;
        self.wire(middle, &router, nth, "up")?;
        self.nft(&router, &kind.rules())?;
        Ok(router)
    }

    /// A node behind a router.
    fn behind(&self, router: &str, home: &str, outer: &str, inner: &str) -> Result<()> {
        self.cable(router, "down", home, "up")?;
        self.addresses(router, home, outer, inner)
    }

    /// Of the cable between a router's `down` and the `up` of what is behind it.
    fn addresses(&self, router: &str, inside: &str, outer: &str, inner: &str) -> Result<()> {
        sh("ip", &["-n", router, "addr", "add", &format!("{outer}/24"), "dev", "down"])?;
        sh("ip", &["-n", inside, "addr", "add", inner, "dev", "up"])?;
        sh("ip", &["-n", inside, "route", "add", "default", "via", outer])
    }

    /// The moving node leaves its network, and comes into another one, behind a router.
    pub(crate) fn move_away(&mut self) -> Result<()> {
        let (middle, home) = (self.place("middle")?, self.place(Kind::Moving.name())?);
        sh("ip", &["-n", &home, "link", "del", "dev", "up"])?;
        let router = self.router(&middle, 40, Kind::PortRestricted)?;
        self.behind(&router, &home, "192.168.7.1", &format!("{INSIDE}/24"))
    }
}

impl Drop for Internet {
    fn drop(&mut self) {
        for space in &self.spaces {
            // What stays says so to whoever lists it.
            drop(sh("ip", &["netns", "del", space]));
        }
    }
}
