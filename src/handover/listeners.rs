//! The listening sockets of a gateway.

use std::io;
use std::net::TcpListener;

use config::{Config, Listen};
use server::listening::{ListenError, bind};

/// The listening sockets, each with the address of the configuration that it is for.
#[derive(Debug)]
pub struct Listeners {
    pub(crate) api: (Listen, TcpListener),
    pub(crate) player: (Listen, TcpListener),
}

impl Listeners {
    /// Binds the addresses of a configuration. Takes over the sockets of `others` that are for the same addresses.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub(crate) fn bind(config: &Config, others: Option<Self>) -> Result<Self, ListenError> {
        let (api, player) = others.map(|it| (it.api, it.player)).unzip();
        let bound = |listen: Listen, other: Option<(Listen, TcpListener)>| match other {
            Some((known, listener)) if known == listen => Ok((listen, listener)),
            _ => bind(listen).map(|it| (listen, it)),
        };
        Ok(Self { api: bound(config.api_listen, api)?, player: bound(config.player_listen, player)? })
    }

    /// Returns other handles of the same sockets.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let Self { api, player } = self;
        Ok(Self { api: (api.0, api.1.try_clone()?), player: (player.0, player.1.try_clone()?) })
    }
}
