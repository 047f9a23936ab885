//! `/api/m3u/accounts/{id}/local-hosts/`: the hosts in private networks that the streams of an account name, for an admin
//! who decides whether the account may lead there.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::local_hosts::{FoundHosts, LocalHosts};
use domain::stream::Stream;
use futures_util::future::join_all;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;
use tokio::net::lookup_host;
use tokio::time::{Instant, timeout_at};

use crate::api::channels::streams::blocking;
use crate::context::RestCall;

/// The hosts in private networks that the streams of an account name.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct M3UAccountLocalHostsView {
    /// Number of hosts.
    #[field(example = "1")]
    count: usize,
    /// At most 20 of them, those of most streams first: addresses and names.
    #[field(example = "[\"192.168.1.20\"]")]
    hosts: Vec<String>,
}

const LOCAL_HOSTS: &str = "/api/m3u/accounts/{id}/local-hosts/";

/// Time after which names without an answer of the resolver count as unknown.
const LOOKUP_MAX: Duration = Duration::from_secs(2);

pub(super) fn routes() -> Vec<Route> {
    const SUMMARY: &str = "Lists the hosts in private networks that the streams of an account name, and that it leads \
                           to only with `allowed_networks`.";
    vec![Route::get(LOCAL_HOSTS, ADMIN, SUMMARY, local_hosts)]
}

async fn local_hosts(call: Call) -> Result<M3UAccountLocalHostsView, Refusal> {
    let account = call.rest().models.accounts.load().get(call.id()?).cloned();
    let account = account.ok_or_else(Refusal::unknown::<Account>)?;
    let refresh = call.rest().models.refreshes.load().get(account.id.0).cloned();
    let context = Arc::clone(call.rest());
    let hosts = blocking(move || {
        let owner = u64::from(account.id.0);
        let mut hosts = LocalHosts::new(account, refresh);
        context.models.store.collection::<Stream>().for_each_of(owner, |it: Stream| hosts.add(&it))?;
        Ok(hosts)
    })
    .await?;
    let look_up = async |name: String| -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((name, 0)).await?.map(|it| it.ip()).collect())
    };
    let FoundHosts { count, hosts } = with_addresses(hosts, look_up).await.found();
    Ok(M3UAccountLocalHostsView { count, hosts })
}

/// Looks up the names, all at the same time. They are few, so that a dead resolver holds few threads.
async fn with_addresses<F: Future<Output = io::Result<Vec<IpAddr>>>>(
    mut hosts: LocalHosts,
    look_up: impl Fn(String) -> F,
) -> LocalHosts {
    let deadline = Instant::now() + LOOKUP_MAX;
    let names = hosts.names();
    let answers = join_all(names.iter().map(|it| timeout_at(deadline, look_up(it.clone())))).await;
    for (name, answer) in names.iter().zip(answers) {
        // A name without an answer stays unknown.
        if let Ok(Ok(addresses)) = answer {
            hosts.resolved(name, &addresses);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::ids::{AccountId, ProfileId, StreamId};
    use domain::source_url::SourceUrl;
    use domain::stream::StreamProperties;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    const ACCOUNT: u32 = 2;

    fn uploaded() -> Account {
        let profile = AccountProfile::default_of(ProfileId(ACCOUNT), "Default", 1);
        let list = PlaylistLocation::Upload("list.m3u".to_owned());
        Account::new(AccountId(ACCOUNT), "a", list, profile, 0)
    }

    fn stream(id: u32, url: &str) -> Stream {
        let provider = StreamProperties::new("s", SourceUrl::new(url));
        Stream::new(StreamId(id), AccountId(ACCOUNT), provider, 0)
    }

    #[tokio::test]
    async fn an_admin_sees_the_private_hosts_that_the_streams_of_an_account_name() {
        let rest = Rest::start().await;
        let path = LOCAL_HOSTS.replace("{id}", &ACCOUNT.to_string());
        assert_eq!(rest.admin("GET", &path, Value::Null).await.status, 404);
        rest.put([uploaded()]).await;
        let nothing = json!({ "count": 0, "hosts": [] });
        assert_eq!(rest.admin("GET", &path, Value::Null).await.body, nothing);
        rest.put([
            stream(1, "http://10.255.255.1:9/1"),
            stream(2, "http://192.168.1.20/2"),
            stream(3, "http://192.168.1.20/3"),
            stream(4, "http://203.0.113.7/4"),
            stream(5, "http://localhost/5"),
        ])
        .await;
        let found = json!({ "count": 2, "hosts": ["192.168.1.20", "10.255.255.1"] });
        assert_eq!(rest.admin("GET", &path, Value::Null).await.body, found);
        assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 403);
        // Streams that an admin added need no permission.
        let custom = LOCAL_HOSTS.replace("{id}", "1");
        assert_eq!(rest.admin("GET", &custom, Value::Null).await.body, nothing);
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_looked_up_within_a_time_limit() {
        let mut hosts = LocalHosts::new(Arc::new(uploaded()), None);
        for host in ["tv.example", "cdn.example", "hangs.example", "hangs.lan", "gone.lan", "gone.example"] {
            hosts.add(&stream(1, &format!("http://{host}/")));
        }
        let look_up = async |name: String| match &*name {
            "tv.example" => Ok(vec![IpAddr::from([192, 168, 1, 9])]),
            "cdn.example" => Ok(vec![IpAddr::from([203, 0, 113, 9])]),
            name if name.starts_with("hangs") => pending().await,
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let began = Instant::now();
        let found = with_addresses(hosts, look_up).await.found();
        assert_eq!(found.hosts, ["gone.lan", "hangs.lan", "tv.example"]);
        assert_eq!(began.elapsed(), LOOKUP_MAX);
    }
}
