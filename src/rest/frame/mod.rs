//! The framework of the REST interface. It knows no resource.
//!
//! A resource declares its fields with the macros of `record.rs`, and its operations as values of `route.rs`.
//! `dispatch.rs` answers requests for them and `openapi.rs` publishes them.

pub(crate) mod access;
pub(crate) mod blocking;
pub(crate) mod call;
#[cfg(test)]
mod conform;
pub(super) mod dispatch;
pub(crate) mod field;
pub(crate) mod filter;
pub(crate) mod input;
pub(super) mod list;
pub(super) mod openapi;
pub(crate) mod pace;
pub(crate) mod picture;
pub(crate) mod plugin;
pub(super) mod record;
pub(crate) mod route;
mod router;
pub(crate) mod saved_upload;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod upload;
pub(crate) mod value;
