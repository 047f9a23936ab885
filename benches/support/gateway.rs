//! A gateway in this process.

use std::net::{Ipv4Addr, SocketAddr};

use config::{Config, ContainerProxy, Listen};
use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::playlist::catalogue::Catalogue;
use headwater::{Gateway, Runtimes};
use uuid::Uuid;

/// Starts a gateway with this number of channels; `key` returns the guide id of a channel.
pub async fn start(n: u32, key: impl Fn(u32) -> Option<String>) -> Gateway {
    let channel = |id: u32| {
        let uuid = Uuid::from_u128(0xfeed_0000_0000_0000 + u128::from(id));
        let number = id.to_string().parse().ok();
        let name = format!("Channel with a name of usual length {id}");
        Channel { number, tvg_id: key(id), ..Channel::new(ChannelId(id), uuid, name, 0) }
    };
    let catalogue = Catalogue { channels: (1..=n).map(channel).collect(), ..Catalogue::default() };
    let local = Listen::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let config = Config {
        api_listen: local,
        player_listen: local,
        container_proxy: ContainerProxy::None,
        ..Config::default()
    };
    headwater::install_tls();
    let store = headwater::play::temporary(catalogue).await.expect("a store");
    Gateway::start(config, store, Runtimes::current()).await.expect("the gateway starts")
}
