//! The networks from which a user may play streams.

use std::net::IpAddr;

use config::{NetworkClass, UserNetworks};
use domain::ids::UserId;
use domain::origin::NetworkList as _;
use storage::Models;

/// Returns whether the networks of a user allow streams from an address. Callers without a user have none.
pub fn may_stream_from(models: &Models, user: UserId, address: IpAddr) -> bool {
    let users = models.users.load();
    let Some(user) = users.get(user.0) else { return true };
    UserNetworks::from_user(user).limit(NetworkClass::Streams).is_none_or(|it| it.contains(address))
}
