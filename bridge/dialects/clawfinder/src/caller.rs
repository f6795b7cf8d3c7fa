//! The account that asks.

use std::sync::Arc;

use mesh::name::{id::KeyPrint, key::KeySecret};

/// See the module. Its secrets live as long as its request.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) print: KeyPrint,
    pub(crate) secret: Arc<KeySecret>,
}
