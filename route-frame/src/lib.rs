//! What a route declares, and everything that happens to a request before and after its handler. It knows no resource.
//!
//! A resource declares its fields with the macros of `resource-derive`, and its operations as values of [`route`].
//! [`dispatch`] answers requests for them and [`openapi`] publishes them.

pub mod access;
pub mod blocking;
pub mod call;
pub mod context;
pub mod dispatch;
pub mod field;
pub mod filter;
pub mod input;
pub mod list;
pub mod network_access;
pub mod openapi;
pub mod pace;
pub mod picture;
pub mod plugin;
mod revision;
pub mod route;
pub mod router;
pub mod states;
pub mod upload;
pub mod value;

// The derive macros name this crate.
#[cfg(test)]
extern crate self as route_frame;
