//! How much the answer to a list reads from the store, whatever the number of records.

use domain::account::{Account, CUSTOM_ACCOUNT};
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSourceKind;
use domain::ids::{ChannelId, GroupId, GuideChannelId, GuideSourceId, LineupId, LogoId, StreamId, UserId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::user::{User, UserLevel};
use http::Method;
use route_frame::access::Access;
use uuid::Uuid;

use super::routes;
use crate::guide_testing::guide_source;
use crate::testing::{ADMIN, Rest};

/// Entries on a page; also the largest page that a list has if none is requested.
const PAGE: u64 = 100;
/// The first id of users that are not in every [`Rest`].
const FIRST_USER: u32 = 100;

fn stream(id: u32) -> Stream {
    let facts = StreamProperties {
        tvg_id: Some(format!("id{id}")),
        group: Some(format!("Group {}", id % 10)),
        ..StreamProperties::new(
            format!("Stream {id}"),
            SourceUrl::new(format!("http://provider.example/{id}.ts")),
        )
    };
    Stream::new(StreamId(id), CUSTOM_ACCOUNT, facts, 0)
}

fn channel(id: u32) -> Channel {
    Channel {
        number: id.to_string().parse().ok(),
        streams: vec![StreamId(id)],
        group: Some(GroupId(id)),
        logo_id: Some(LogoId(id)),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0)
    }
}

/// Stores this many records of each kind of which there may be many.
async fn stage(n: u32) -> Rest {
    let rest = Rest::start().await;
    rest.put([guide_source(1, GuideSourceKind::Xmltv)]).await;
    for first in (1..=n).step_by(5_000) {
        let ids = first..=n.min(first + 4_999);
        rest.put(ids.clone().map(|id| Group::new(GroupId(id), format!("Group {id}")))).await;
        rest.put(ids.clone().map(|id| Logo {
            id: LogoId(id),
            name: format!("Logo {id}"),
            url: format!("http://logos.example/{id}.png"),
            file: None,
            named_by: None,
            guide_source: None,
            updated_at: 0,
        }))
        .await;
        rest.put(ids.clone().map(stream)).await;
        rest.put(ids.clone().map(channel)).await;
        rest.put(ids.clone().map(|id| GuideChannel {
            id: GuideChannelId(id),
            source: GuideSourceId(1),
            key: format!("id{id}"),
            names: vec![format!("Guide channel {id}")],
            icon: None,
        }))
        .await;
    }
    let few = 1..=n / 10;
    rest.put(few.clone().map(|id| Lineup::new(LineupId(id), format!("Profile {id}"), id % 2 == 0))).await;
    rest.put(few.map(|id| User::new(UserId(FIRST_USER + id), format!("user{id}"), UserLevel::Streamer, 0)))
        .await;
    assert!(!rest.models.store.collection::<Account>().is_empty());
    rest
}

/// Returns the status of an answer, and the number of records that it read from the store.
async fn reads(rest: &Rest, path: &str) -> (u16, u64) {
    let n_reads = || rest.models.store.statistics().n_reads;
    let bearer = rest.bearer(ADMIN);
    let mut found = (0, u64::MAX);
    // Twice, because something else may read in the background.
    for _ in 0..2 {
        let before = n_reads();
        let (status, _) = rest.send_pieces(path, &[("authorization", &bearer)]).await;
        found = (status, found.1.min(n_reads() - before));
    }
    found
}

/// Holds T-mem.1.
#[tokio::test]
async fn a_list_of_thousands_of_records_reads_as_little_from_the_store_as_one_of_ten() {
    let (few, many) = (stage(10).await, stage(2_500).await);
    let mut n_lists = 0;
    let mut wrong = Vec::new();
    let lists = routes().into_iter().filter(|it| it.method == Method::GET && !it.path.contains('{'));
    for route in lists {
        let queries = match route.access {
            Access::QueryLogin => {
                let login = few.query_login(ADMIN);
                vec![login.clone(), format!("{login}&action=get_live_streams")]
            }
            _ => vec![String::new(), format!("page=1&page_size={PAGE}")],
        };
        for query in queries {
            let path = format!("{}?{query}", route.path);
            let (small, large) = (reads(&few, &path).await, reads(&many, &path).await);
            assert_eq!(small.0, large.0, "{path}");
            n_lists += u32::from(large.0 == 200);
            if large.1 > small.1 + PAGE {
                wrong.push(format!("{path}: {} reads of ten records, {} of many", small.1, large.1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(n_lists > 50, "{n_lists}");
}
