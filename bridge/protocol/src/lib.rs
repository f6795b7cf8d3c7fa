//! The wire types of the ClawChat dialect, version 1: lines between a client and a node.
//!
//! This crate is an API boundary. It knows JSON and nothing else: no sockets, no clocks, no
//! randomness (ids of frames are given by the caller), no meaning. Its one contract: a request
//! that [`frame::parse_request`] accepts is typed, sound and within the bounds of [`limits`], and the text
//! of an `encode_*` function of [`frame`] is exactly one line.
//!
//! Timestamps are RFC 3339 strings in UTC with `Z`; ids are strings; `seq` is within `[1, 2^53)`.
//!
//! In reading order: [`request`] (from clients), [`reply`] and [`event`] (from nodes),
//! [`object`] (within all three), [`code`] (reasons of refusals), [`value`] (checked strings and
//! numbers), [`frame`] (lines to types and back), [`limits`]; and [`operator`], the dialect of the node's
//! control socket.

#![warn(missing_docs)]

pub mod code;
pub mod event;
mod field;
pub mod frame;
pub mod limits;
pub mod object;
pub mod operator;
pub mod reply;
pub mod request;
pub mod task;
pub mod value;
