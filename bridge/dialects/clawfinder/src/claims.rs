//! The order in which accounts came to an id or a username, as the directory of the mesh has it.

use std::collections::HashMap;

use mesh::name::{
    account::Label,
    id::{KeyPrint, MeshId},
};
use openpgp::Fingerprint;

/// Orders of labels that more than one account wants.
#[derive(Debug)]
pub(crate) struct Claims {
    mesh: MeshId,
    /// Accounts that claimed a label, as their claims count.
    of: HashMap<Label, Vec<KeyPrint>>,
}

impl Claims {
    pub(crate) fn new(mesh: MeshId) -> Claims {
        Claims { mesh, of: HashMap::new() }
    }

    /// Labels are wanted by more than one account. Those that are wanted no more are forgotten.
    pub(crate) fn set(&mut self, of: HashMap<Label, Vec<KeyPrint>>) {
        self.of = of;
    }

    pub(crate) fn label_of_id(&self, id: Fingerprint) -> Label {
        Label::of(&[b"clawmesh finder id", &self.mesh.0, &id.0])
    }

    pub(crate) fn label_of_name(&self, folded: &str) -> Label {
        Label::of(&[b"clawmesh finder username", &self.mesh.0, folded.as_bytes()])
    }

    /// The place of an account among those that claimed an id. One that did not comes last.
    pub(crate) fn of_id(&self, print: KeyPrint, id: Fingerprint) -> usize {
        self.place(print, self.label_of_id(id))
    }

    /// The place of an account among those that claimed a username. One that did not comes last.
    pub(crate) fn of_name(&self, print: KeyPrint, folded: &str) -> usize {
        self.place(print, self.label_of_name(folded))
    }

    fn place(&self, print: KeyPrint, label: Label) -> usize {
        let order = self.of.get(&label).map(Vec::as_slice).unwrap_or_default();
        order.iter().position(|other| *other == print).unwrap_or(usize::MAX)
    }
}
