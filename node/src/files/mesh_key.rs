//! The text of `mesh.key`. A mesh whose secret never changed: the secret, and the founder. Any
//! other: `2`, its id and the founder; then a line for each secret, the newest first: its number,
//! the secret, and the nodes that had been expelled.

use mesh::{
    LinkSecret, MeshSecret,
    name::id::{MeshId, NodeId, parse_hex},
};
use zeroize::Zeroizing;

use super::private::hex;

pub(super) fn read(text: &str) -> Option<MeshSecret> {
    let mut lines = text.trim().lines();
    let first: Vec<&str> = lines.next()?.split(' ').collect();
    match first[..] {
        [secret, founder] => {
            let secret = Zeroizing::new(parse_hex(secret)?);
            Some(MeshSecret::new(*secret, NodeId(parse_hex(founder)?)))
        }
        ["2", mesh, founder] => {
            let secrets = lines.map(|line| {
                let mut words = line.split(' ');
                let number = words.next()?.parse().ok()?;
                let secret = Zeroizing::new(parse_hex(words.next()?)?);
                let without = words.map(|id| parse_hex(id).map(NodeId));
                let without: Vec<NodeId> = without.collect::<Option<_>>()?;
                Some(LinkSecret::new(number, *secret).leaving_out(without))
            });
            let mut secrets: Vec<LinkSecret> = secrets.collect::<Option<_>>()?;
            let newest = (!secrets.is_empty()).then(|| secrets.remove(0))?;
            let (mesh, founder) = (MeshId(parse_hex(mesh)?), NodeId(parse_hex(founder)?));
            let mut mesh = MeshSecret::renewed(mesh, founder, newest);
            mesh.keep_former(secrets);
            Some(mesh)
        }
        _ => None,
    }
}

pub(super) fn write(mesh: &MeshSecret) -> Zeroizing<String> {
    let link = mesh.link();
    let founding = || MeshSecret::new(*link.bytes(), mesh.founder()).mesh_id() == mesh.mesh_id();
    // The name is made of the founding secret: beside any other it has to be written.
    if link.epoch().number == 0 && founding() {
        return Zeroizing::new(format!("{} {}\n", &*hex(link.bytes()), mesh.founder()));
    }
    let mut text = Zeroizing::new(format!("2 {} {}\n", mesh.mesh_id(), mesh.founder()));
    for secret in [link].into_iter().chain(mesh.former()) {
        text.push_str(&format!("{} {}", secret.epoch().number, &*hex(secret.bytes())));
        secret.without().iter().for_each(|node| text.push_str(&format!(" {node}")));
        text.push('\n');
    }
    text
}
