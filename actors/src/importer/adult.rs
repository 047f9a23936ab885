//! Marks the channels of streams that the provider marks as adult content, or an admin marks the group of.
//!
//! The marks of all streams of the list are compared with the channels at every refresh, not only those that changed, so
//! that a refresh that was interrupted before its channels were written is made up for by the next one.

use std::collections::HashSet;
use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{ChannelId, GroupId, StreamId};
use domain::stream::Stream;
use domain::streams::{StreamQuery, StreamSnapshot};
use storage::{Table, Write};
use tracing::info;

use super::error::ImportError;
use super::job::Job;
use crate::clock::now_ms;

/// Maximum number of channels that one commit changes.
const CHANNELS_AT_ONCE: usize = 500;

/// The streams of an account that are adult content after its refresh, by their marks or by the groups that an admin marked.
pub(super) struct AdultStreams {
    streams: HashSet<StreamId>,
    groups: Arc<Table<Group>>,
    /// The names of the groups that an admin marked, which are few.
    names: HashSet<String>,
}

impl AdultStreams {
    pub(super) fn new(groups: Arc<Table<Group>>) -> Self {
        let marked = groups.iter().filter(|it| it.is_adult);
        let names = marked.flat_map(|it| it.names()).map(str::to_owned).collect();
        Self { streams: HashSet::new(), groups, names }
    }

    /// Returns whether the groups are still those that the marks were taken from.
    pub(super) fn is_of(&self, groups: &Arc<Table<Group>>) -> bool {
        Arc::ptr_eq(&self.groups, groups)
    }

    /// Notes the mark and the group of a stream; the last ones count.
    pub(super) fn note(&mut self, stream: StreamId, is_marked: bool, group: Option<&str>) {
        if is_marked || self.is_adult_group(group) {
            self.streams.insert(stream);
        } else if !self.streams.is_empty() {
            self.streams.remove(&stream);
        }
    }

    fn is_adult_group(&self, name: Option<&str>) -> bool {
        !self.names.is_empty() && name.is_some_and(|it| self.names.contains(it))
    }

    /// Returns the channels whose mark probably differs from that of their streams. Others are left alone: those of which
    /// a person decided, and those without a stream of this account.
    pub(super) fn outdated(&self, job: &Job, channels: &Table<Channel>) -> Vec<ChannelId> {
        let owner = u64::from(job.account.id.0);
        let streams = job.models.store.collection::<Stream>();
        let is_own = |id: &StreamId| streams.owner_of(id.0) == Some(owner);
        let is_of_adult =
            |it: &Channel| it.group.and_then(|id| self.groups.get(id.0)).is_some_and(|it| it.is_adult);
        let is_marked =
            |it: &Channel| it.streams.iter().any(|id| self.streams.contains(id)) || is_of_adult(it);
        let is_outdated = |it: &Channel| match it.is_adult {
            _ if it.is_adult_by_hand() => false,
            false => is_marked(it),
            true => !is_marked(it) && it.streams.iter().any(is_own),
        };
        channels.iter().filter(|it| is_outdated(it)).map(|it| it.id).collect()
    }
}

/// Gives these channels the marks of their streams.
pub(super) fn mark(job: &Job, outdated: &[ChannelId]) -> Result<(), ImportError> {
    let mut n_changed = 0;
    for ids in outdated.chunks(CHANNELS_AT_ONCE) {
        job.check_stop()?;
        let ids = ids.to_vec();
        n_changed += job.models.store.write_blocking(move |write| mark_some(write, &ids))?;
    }
    if n_changed > 0 {
        info!(account.id = %job.account.id, channels = n_changed, "channels got the adult marks of their streams");
    }
    Ok(())
}

/// Reads the channels and all their streams again, which may be of several accounts. Returns how many channels changed.
fn mark_some(write: &mut Write<'_>, ids: &[ChannelId]) -> storage::Result<u64> {
    let mut n_changed = 0;
    for id in ids {
        let Some(mut channel) = write.get::<Channel>(id.0)? else { continue };
        let is_marked = any_adult(write, &channel.streams, channel.group)?;
        if channel.follow_adult_mark(is_marked) {
            channel.updated_at = now_ms();
            write.put(&channel)?;
            n_changed += 1;
        }
    }
    Ok(n_changed)
}

/// Returns whether a channel with these streams, in this group, is adult content: by the mark of a provider on a stream, or
/// by that of an admin on the group of the channel or of a stream.
///
/// # Errors
/// The store cannot be read.
pub fn any_adult(write: &Write<'_>, streams: &[StreamId], group: Option<GroupId>) -> storage::Result<bool> {
    let of_channel = group.map_or(Ok(None), |it| write.get::<Group>(it.0))?;
    if of_channel.is_some_and(|it| it.is_adult) {
        return Ok(true);
    }
    for id in streams {
        let Some(stream) = write.get::<Stream>(id.0)? else { continue };
        if stream.is_adult() || is_adult_group(write, stream.group())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether an admin marked the group with this name in playlists as adult content.
fn is_adult_group(write: &Write<'_>, name: Option<&str>) -> storage::Result<bool> {
    let groups = name.map_or_else(|| Ok(Vec::new()), |it| write.by::<Group>("name", it))?;
    Ok(groups.iter().any(|it| it.is_adult))
}

/// Gives the channels of a group, and those that play streams of it, the marks that they should have. Call it after the mark
/// of the group has changed. A list of streams that is not up to date is made up for by the next refresh.
///
/// # Errors
/// The store cannot be read or written.
pub fn mark_group(write: &mut Write<'_>, group: &Group, streams: &StreamSnapshot) -> storage::Result<()> {
    let groups = Some(group.names().map(str::to_owned).collect());
    let of_group: HashSet<StreamId> =
        streams.ids(&StreamQuery { groups, ..StreamQuery::default() }).into_iter().collect();
    let is_of_group = |it: &Channel| {
        it.group == Some(group.id) || it.streams.iter().any(|stream| of_group.contains(stream))
    };
    let channels: Vec<Channel> = write.all()?;
    let ids: Vec<ChannelId> = channels.iter().filter(|it| is_of_group(it)).map(|it| it.id).collect();
    mark_some(write, &ids)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use domain::account::{Account, AccountProfile, PlaylistLocation};
    use domain::account_group::AccountGroup;
    use domain::ids::{AccountGroupId, AccountId, ProfileId};
    use domain::source_url::SourceUrl;
    use domain::stream::StreamProperties;
    use storage::{Models, Record, Store};
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use crate::fetch::{Fetch, FetchLimits};
    use crate::importer::{ImportOptions, ImportSummary, import};

    const ACCOUNT: AccountId = AccountId(2);

    /// A store with an account, whose list is a file.
    struct Fixture {
        models: Models,
        fetch: Fetch,
        folder: TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            // Fails at the second call.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let folder = tempfile::tempdir().unwrap();
            let models = tokio::task::spawn_blocking(|| {
                Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap()
            });
            let (models, fetch) = (models.await.unwrap(), Fetch::new(FetchLimits::default()).unwrap());
            let fixture = Self { models, fetch, folder };
            let list = PlaylistLocation::File(fixture.list().to_string_lossy().into_owned());
            let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
            fixture.put(Account::new(ACCOUNT, "a", list, profile, 0)).await;
            fixture
        }

        fn list(&self) -> PathBuf {
            self.folder.path().join("list.m3u")
        }

        async fn put<T: Record + Send + Sync + 'static>(&self, record: T) {
            let done = self.models.store.write(move |write| write.put(&record));
            let done: Result<(), storage::Error> = done.await;
            done.unwrap();
        }

        /// Imports a list of entries: the name, with `!` if it is marked, and `/` before it if it is in the group "Live".
        async fn import(&self, entries: &[&str]) -> ImportSummary {
            let mut list = "#EXTM3U\n".to_owned();
            for entry in entries {
                let name = entry.trim_matches(['/', '!']);
                let group = if entry.starts_with('/') { " group-title=\"Live\"" } else { "" };
                let mark = if entry.ends_with('!') { " is_adult=\"1\"" } else { "" };
                list += &format!("#EXTINF:-1{group}{mark},{name}\nhttp://tv.example/{name}.ts\n");
            }
            fs::write(self.list(), list).unwrap();
            import(&self.models, &self.fetch, ACCOUNT, ImportOptions::default(), |_| {}).await.unwrap()
        }

        async fn stream(&self, name: &str) -> StreamId {
            let (models, name) = (self.models.clone(), name.to_owned());
            let found =
                tokio::task::spawn_blocking(move || models.store.collection::<Stream>().all().unwrap());
            found.await.unwrap().into_iter().find(|it| it.name() == name).unwrap().id
        }

        async fn channel(&self, id: u32, streams: &[StreamId]) {
            let channel = Channel::new(ChannelId(id), Uuid::from_u128(id.into()), id.to_string(), 0);
            self.put(Channel { streams: streams.to_vec(), ..channel }).await;
        }

        /// Lists the channels that are adult content.
        fn adult(&self) -> Vec<String> {
            let channels = self.models.channels.load();
            channels.iter().filter(|it| it.is_adult).map(|it| it.name.clone()).collect()
        }
    }

    /// Channels of streams that the provider marked showed up for users who hide adult content.
    #[tokio::test]
    async fn a_refresh_gives_channels_the_marks_of_their_streams_unless_a_person_decided() {
        let fixture = Fixture::new().await;
        fixture.import(&["a", "b"]).await;
        let (a, b) = (fixture.stream("a").await, fixture.stream("b").await);
        let properties = StreamProperties::new("c", SourceUrl::new("http://other.example/c"));
        let mut other = Stream::new(StreamId(900), AccountId(3), properties, 0);
        fixture.put(other.clone()).await;
        for (id, streams) in [(1, vec![a]), (2, vec![b]), (3, vec![b, a]), (4, vec![a, other.id])] {
            fixture.channel(id, &streams).await;
        }
        fixture.import(&["a", "b"]).await;
        assert_eq!(fixture.adult(), [""; 0]);

        // Channels that exist follow a mark that is new.
        assert_eq!(fixture.import(&["a!", "b"]).await.n_changed, 1);
        assert_eq!(fixture.adult(), ["1", "3", "4"]);

        // The same list again changes nothing that a person decided.
        let mut decided = (**fixture.models.channels.load().get(1).unwrap()).clone();
        decided.set_adult_by_hand(false, true);
        fixture.put(decided).await;
        assert_eq!(fixture.import(&["a!", "b"]).await.n_changed, 0);
        assert_eq!(fixture.adult(), ["3", "4"]);

        // It also marks a channel that an interrupted refresh has left out.
        fixture.channel(5, &[a]).await;
        assert_eq!(fixture.import(&["a!", "b"]).await.n_changed, 0);
        assert_eq!(fixture.adult(), ["3", "4", "5"]);

        // A mark that is gone is taken back, unless a stream of another account has one.
        other.provider.is_adult = true;
        fixture.put(other).await;
        fixture.import(&["a", "b"]).await;
        assert_eq!(fixture.adult(), ["4"]);
    }

    #[tokio::test]
    async fn channels_that_a_refresh_creates_have_the_marks_of_their_streams() {
        let fixture = Fixture::new().await;
        fixture.put(Group::new(GroupId(7), "Live")).await;
        let link = AccountGroup::new(AccountGroupId(1), ACCOUNT, GroupId(7), true);
        fixture.put(AccountGroup { auto_channel_sync: true, ..link }).await;
        fixture.import(&["/a!", "/b", "c!"]).await;
        assert_eq!(fixture.adult(), ["a"]);
        assert_eq!(fixture.models.channels.load().len(), 2);
        fixture.import(&["/a", "/b!", "c!"]).await;
        assert_eq!(fixture.adult(), ["b"]);
    }

    /// Holds for the channels of a refresh, and for those that play its streams in other groups.
    #[tokio::test]
    async fn what_a_marked_group_gets_by_a_refresh_is_adult() {
        let fixture = Fixture::new().await;
        fixture.put(Group::new(GroupId(7), "Live")).await;
        let link = AccountGroup::new(AccountGroupId(1), ACCOUNT, GroupId(7), true);
        fixture.put(AccountGroup { auto_channel_sync: true, ..link }).await;
        fixture.import(&["/a", "b"]).await;
        let b = fixture.stream("b").await;
        fixture.channel(50, &[b]).await;
        assert_eq!(fixture.adult(), [""; 0]);
        fixture.put(Group { is_adult: true, ..Group::new(GroupId(7), "Live") }).await;
        fixture.import(&["/a", "/c", "b"]).await;
        assert_eq!(fixture.adult(), ["a", "c"]);
        fixture.import(&["/a", "/c", "/b"]).await;
        assert_eq!(fixture.adult(), ["a", "50", "c", "b"]);
        fixture.put(Group::new(GroupId(7), "Live")).await;
        fixture.import(&["/a", "/c", "/b"]).await;
        assert_eq!(fixture.adult(), [""; 0]);
    }
}
