//! Lets media servers find the emulated tuners by themselves: answers to the discovery of HDHomeRun devices and of UPnP.
//! Off by default.
//!
//! Only requests of local networks that may use the tuner without credentials are answered, at most a few in a second,
//! because anybody can write another sender into a UDP packet.

mod hdhomerun;
mod ssdp;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use actors::now_ms;
use config::{self, NetworkClass, Networks};
use domain::discovery::{ANNOUNCED_MAX, AnnouncedDevice, AnswerLimit};
use domain::origin::NetworkList as _;
use player::announced_devices;
use rest::context::RestContext;
use socket2::{Domain, Protocol, Socket, Type};
use storage::Models;
use tokio::net::UdpSocket;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

/// Pause after an error, so that a broken port does not keep a processor busy.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The bound UDP addresses of a running discovery; `None` if a port could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryAddresses {
    pub hdhomerun: Option<SocketAddr>,
    pub ssdp: Option<SocketAddr>,
}

/// A running discovery. Dropping it closes its ports.
pub(crate) struct Discovery {
    hdhomerun: Option<Responder>,
    ssdp: Option<Responder>,
}

/// An open port and the task that answers on it.
struct Responder {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl Discovery {
    /// Starts the discovery if it is enabled. A port that cannot be opened is logged: the gateway works without it.
    pub(crate) fn start(
        context: &Arc<RestContext>,
        player_addr: SocketAddr,
        runtime: &Handle,
    ) -> Option<Self> {
        let settings = &context.config.discovery;
        if !settings.enabled {
            return None;
        }
        let devices = Arc::new(Devices { context: Arc::clone(context), player_addr });
        let _entered = runtime.enter();
        let hdhomerun = opened("HDHomeRun discovery", bind(settings, settings.hdhomerun_port));
        let hdhomerun = hdhomerun.map(|(socket, address)| {
            let task = runtime.spawn(hdhomerun::answer(Arc::clone(&socket), Arc::clone(&devices)));
            Responder { socket, address, _task: AbortOnDropHandle::new(task) }
        });
        let ssdp = bind(settings, settings.ssdp_port).and_then(|it| ssdp::join(it, settings));
        let ssdp = opened("UPnP discovery", ssdp).map(|(socket, address)| {
            let task = runtime.spawn(ssdp::answer(Arc::clone(&socket), devices));
            Responder { socket, address, _task: AbortOnDropHandle::new(task) }
        });
        Some(Discovery { hdhomerun, ssdp })
    }

    /// Returns the bound addresses.
    pub(crate) fn addresses(&self) -> DiscoveryAddresses {
        let address = |it: &Option<Responder>| it.as_ref().map(|it| it.address);
        DiscoveryAddresses { hdhomerun: address(&self.hdhomerun), ssdp: address(&self.ssdp) }
    }

    /// Announces that the devices are gone, and closes the ports.
    pub(crate) async fn stop(self, models: &Models) {
        if let Some(ssdp) = &self.ssdp {
            let ids = announced_devices(models).into_iter().take(ANNOUNCED_MAX).map(|it| it.0.id);
            ssdp::announce_end(&ssdp.socket, ids).await;
        }
    }
}

/// Returns an opened port, or logs why there is none.
fn opened(name: &str, bound: io::Result<UdpSocket>) -> Option<(Arc<UdpSocket>, SocketAddr)> {
    match bound.and_then(|socket| Ok((socket.local_addr()?, socket))) {
        Ok((address, socket)) => {
            info!(%address, "{name} started");
            Some((Arc::new(socket), address))
        }
        Err(error) => {
            warn!("failed to start the {name}, so media servers need the address of the tuner: {error}");
            None
        }
    }
}

/// Binds a UDP port. Other programs on this machine may answer on the same port.
fn bind(settings: &config::Discovery, port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // A port at another address than the wildcard would receive neither broadcasts nor multicasts.
    let address = if settings.interface.is_loopback() { settings.interface } else { Ipv4Addr::UNSPECIFIED };
    socket.bind(&SocketAddr::from((address, port)).into())?;
    if !settings.interface.is_unspecified() {
        socket.set_multicast_if_v4(&settings.interface)?;
    }
    UdpSocket::from_std(socket.into())
}

/// The announced devices, and who may know of them.
struct Devices {
    context: Arc<RestContext>,
    player_addr: SocketAddr,
}

impl Devices {
    /// Returns whether a sender may be answered.
    fn may_answer(&self, sender: IpAddr, limit: &mut AnswerLimit) -> bool {
        let rules = self.context.networks.rules();
        Networks::local().contains(sender)
            && rules.connect(NetworkClass::Tuner).contains(sender)
            && rules.anonymous(NetworkClass::Tuner).contains(sender)
            && limit.allows(sender, now_ms())
    }

    /// Returns the devices with addresses that `client` can reach.
    fn for_client(&self, client: IpAddr) -> Vec<AnnouncedDevice> {
        let Some(origin) = self.origin(client) else { return Vec::new() };
        let devices = announced_devices(&self.context.models).into_iter().take(ANNOUNCED_MAX);
        let announced = |(device, path): (player::Device, String)| AnnouncedDevice {
            device_id: device.id,
            tuner_count: device.tuner_count,
            base_url: format!("{origin}{path}"),
        };
        devices.map(announced).collect()
    }

    /// Returns the address of the gateway without a trailing slash, as this client can reach it.
    fn origin(&self, client: IpAddr) -> Option<String> {
        if let Some(url) = self.context.public_url() {
            return Some(url);
        }
        let local = match self.player_addr.ip() {
            it if it.is_unspecified() => local_address_for(client).ok()?,
            it => it,
        };
        Some(format!("http://{}", SocketAddr::new(local.to_canonical(), self.player_addr.port())))
    }
}

/// Returns the address of this machine on the way to a client. Sends nothing.
fn local_address_for(client: IpAddr) -> io::Result<IpAddr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Any port: connecting a UDP socket only chooses the route.
    socket.connect((client, domain::discovery::ssdp::PORT))?;
    Ok(socket.local_addr()?.ip())
}
