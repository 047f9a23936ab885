//! Makes channels of the streams of an account that no channel has.

use std::collections::HashSet;

use anyhow::anyhow;
use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use rest::ChannelMaker;
use server::reply::Refusal;
use storage::{Models, Write};

use super::preview::is_in_groups;

/// Number of streams that one write turns into channels.
const STREAMS_AT_ONCE: usize = 1_000;

/// Makes channels of the live streams of these groups, all groups if none is named. Returns a sentence for the operator.
/// Blocks.
pub(super) fn make(models: &Models, account: AccountId, groups: &[String]) -> anyhow::Result<String> {
    let streams = streams_without_channel(models, account, groups)?;
    let mut maker = ChannelMaker::new(models);
    for some in streams.chunks(STREAMS_AT_ONCE) {
        let some = some.to_vec();
        // An error discards the channels of this write; those of the writes before stay.
        let made = models.store.write_blocking(move |write: &mut Write<'_>| {
            for stream in &some {
                maker.add(write, stream)?;
            }
            Ok::<_, Refusal>(maker)
        });
        maker = made.map_err(|refusal| anyhow!("{refusal}"))?;
    }
    Ok(sentence(&maker))
}

/// Returns the live streams of an account that no channel has, in the order of the playlist.
fn streams_without_channel(
    models: &Models,
    account: AccountId,
    groups: &[String],
) -> storage::Result<Vec<Stream>> {
    let channels = models.channels.load();
    let used: HashSet<StreamId> = channels.iter().flat_map(|it| it.streams.iter().copied()).collect();
    let mut found = Vec::new();
    models.store.collection::<Stream>().for_each_of(u64::from(account.0), |stream| {
        let is_wanted = stream.content().is_live() && !stream.is_stale();
        if is_wanted && !used.contains(&stream.id) && is_in_groups(stream.group(), groups) {
            found.push(stream);
        }
    })?;
    found.sort_by_key(|it| it.id);
    Ok(found)
}

fn sentence(maker: &ChannelMaker) -> String {
    let mut text = format!("made {} channel(s)", maker.created().len());
    if let n_merged @ 1.. = maker.n_merged() {
        text += &format!(", added {n_merged} stream(s) to channels that existed");
    }
    if let n_full @ 1.. = maker.n_full() {
        text += &format!(", left out {n_full} stream(s) of channels that have the maximum number of streams");
    }
    text
}
