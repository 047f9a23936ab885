//! Applies the rule of [`domain::egress`] to connections: by the reach of an address, and never to our own ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use domain::egress::{EgressError, Reach};
use media::source::AddressPolicy;

/// The rule for one request and its redirects.
#[derive(Clone, Debug)]
pub(crate) struct Egress {
    reach: Reach,
    own_listeners: Arc<[SocketAddr]>,
}

impl Egress {
    pub(crate) fn new(reach: Reach, own_listeners: Arc<[SocketAddr]>) -> Self {
        Self { reach, own_listeners }
    }

    /// Returns the rule for what the server at this address names.
    pub(crate) fn after(self, server: SocketAddr) -> Self {
        Self { reach: self.reach.after(server.ip()), ..self }
    }

    /// Checks an address.
    ///
    /// # Errors
    /// It may not be connected to.
    pub(crate) fn check(&self, to: SocketAddr) -> Result<(), EgressError> {
        if self.reach.is_typed() {
            return Ok(());
        }
        self.reach.check(to.ip())?;
        // Compared by port first, because whose an address is has to be asked from the kernel.
        let is_own_port = self.own_listeners.iter().any(|it| it.port() == to.port());
        if is_own_port && is_of_this_machine(to.ip()) { Err(EgressError::OwnListener) } else { Ok(()) }
    }
}

impl AddressPolicy for Egress {
    fn trusts_request(&self) -> bool {
        self.reach.is_typed()
    }

    fn check(&self, to: SocketAddr, named_by: Option<SocketAddr>) -> Result<(), String> {
        let rule = named_by.map_or_else(|| self.clone(), |server| self.clone().after(server));
        rule.check(to).map_err(|error| error.to_string())
    }
}

/// Returns whether an address belongs to this machine: the kernel would send from it to reach it. No packet is sent.
fn is_of_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        // Any port but 0.
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|it| it.ip() == address)
}

#[cfg(test)]
mod tests {
    use domain::egress::{AllowedNetworks, Distance};

    use super::*;

    #[test]
    fn no_provider_leads_to_our_own_ports_by_any_address_of_the_machine() {
        let own: Arc<[SocketAddr]> = ["[::]:9191".parse().unwrap(), "127.0.0.1:8000".parse().unwrap()].into();
        let check = |reach: Reach, to: &str, expected: Result<(), EgressError>| {
            assert_eq!(Egress::new(reach, own.clone()).check(to.parse().unwrap()), expected, "{to}");
        };
        let near = Reach::named_by(Distance::Loopback, AllowedNetworks::OfPlaylist);
        for to in
            ["127.0.0.1:9191", "127.0.0.9:8000", "[::1]:9191", "0.0.0.0:9191", "[::ffff:127.0.0.1]:9191"]
        {
            check(near, to, Err(EgressError::OwnListener));
            check(Reach::default(), to, Ok(()));
        }
        check(near, "127.0.0.1:9192", Ok(()));
        check(near, "203.0.113.1:9191", Ok(()));
        check(
            Reach::named_by(Distance::Public, AllowedNetworks::Loopback),
            "127.0.0.1:8000",
            Err(EgressError::OwnListener),
        );
        // The address by which others reach this machine, if it has one.
        let own_address =
            UdpSocket::bind("0.0.0.0:0").and_then(|it| it.connect("192.0.2.1:9").and(it.local_addr()));
        if let Ok(address) = own_address {
            assert!(is_of_this_machine(address.ip()), "{address}");
        }
    }
}
