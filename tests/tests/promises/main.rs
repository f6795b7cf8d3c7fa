//! One binary for all promises that cross packages. See the library.

mod tree;
mod wire_page;
