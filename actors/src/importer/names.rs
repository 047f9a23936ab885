//! The names of channels that refreshes created, by rules that clean names.

use std::collections::HashMap;
use std::sync::Arc;

use domain::account_group::AccountGroup;
use domain::auto_sync::{SyncSettings, channel_name};
use domain::channel::{AutoChannel, Channel, SyncedValues};
use domain::ids::{AccountId, ChannelId, GroupId};
use domain::name_cleaning::NameCleaner;
use domain::stream::Stream;
use storage::records::link_key;
use storage::{Models, Table};

use super::sync::{CHANNELS_AT_ONCE, update};

/// A channel whose name the rules change.
#[derive(Debug, Clone, PartialEq)]
pub struct RenamedChannel {
    pub id: ChannelId,
    /// The name of its stream.
    pub provider_name: String,
    /// The name that people see.
    pub before: String,
    /// The name that they would see.
    pub after: String,
    /// The values that the refresh set, with the new name.
    pub auto: AutoChannel,
}

/// Visits the channels of refreshes that have another name by these rules, as far as no admin named them. Blocks.
///
/// # Errors
/// The store fails.
pub fn renamed_channels(
    models: &Models,
    cleaner: &Arc<NameCleaner>,
    visit: &mut dyn FnMut(RenamedChannel),
) -> Result<(), storage::Error> {
    let (channels, links) = (models.channels.load(), models.account_groups.load());
    let streams = models.store.collection::<Stream>();
    let mut settings: HashMap<(AccountId, GroupId), Option<SyncSettings>> = HashMap::new();
    for channel in channels.iter() {
        let Some(auto) = followed(channel) else { continue };
        let of_group = settings
            .entry((auto.account, auto.group))
            .or_insert_with_key(|(account, group)| settings_of(&links, *account, *group, cleaner));
        let Some(settings) = of_group else { continue };
        let Some(stream) = streams.get(auto.stream.0)? else { continue };
        let after = channel_name(auto.account, stream.name(), settings);
        if after != channel.name {
            visit(RenamedChannel {
                id: channel.id,
                provider_name: stream.name().to_owned(),
                before: channel.name.clone(),
                auto: AutoChannel {
                    synced: SyncedValues { name: after.clone(), ..auto.synced.clone() },
                    ..auto.clone()
                },
                after,
            });
        }
    }
    Ok(())
}

/// Returns the origin of a channel that still has the name that a refresh set.
fn followed(channel: &Channel) -> Option<&AutoChannel> {
    channel.followed().filter(|it| it.synced.name == channel.name)
}

/// Returns the settings of a group with these rules. `None` if its channels are no longer synchronised.
fn settings_of(
    links: &Table<AccountGroup>,
    account: AccountId,
    group: GroupId,
    cleaner: &Arc<NameCleaner>,
) -> Option<SyncSettings> {
    let link =
        links.one_by("link", link_key(account, group)).filter(|it| it.auto_channel_sync && it.enabled)?;
    let settings = SyncSettings::read(link).ok()?;
    Some(SyncSettings { cleaner: Arc::clone(cleaner), ..settings })
}

/// Gives the channels of refreshes the names of the present rules. Returns the number of changed channels. Blocks.
///
/// # Errors
/// The store fails.
pub fn clean_channel_names(models: &Models) -> Result<u64, storage::Error> {
    let mut by_account: HashMap<AccountId, Vec<(ChannelId, AutoChannel)>> = HashMap::new();
    let cleaner = Arc::new(models.name_cleaner());
    renamed_channels(models, &cleaner, &mut |it| {
        by_account.entry(it.auto.account).or_default().push((it.id, it.auto));
    })?;
    let mut n = 0;
    for (account, renamed) in by_account {
        for some in renamed.chunks(CHANNELS_AT_ONCE) {
            let some = some.to_vec();
            n += models.store.write_blocking(move |write| update(write, account, some))?;
        }
    }
    Ok(n)
}
