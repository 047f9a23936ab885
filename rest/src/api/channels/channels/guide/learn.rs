//! Learns the names that admins link with guide channels, so that matching finds them by itself.

use actors::now_ms;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::matching::{AliasName, GUIDE_ALIASES_MAX, GuideAlias, NameRules, NormalName, Subject};
use domain::guide::source::{GuideSource, GuideSourceKind};
use server::reply::Refusal;
use storage::Write;

use crate::api::channels::undo::UndoLog;

/// Links of one request that are learned even if the guide channel has the name of the channel. They settle ties; very many
/// of them would displace other aliases.
const SAME_NAMES_MAX: usize = 100;

/// Learns that this guide channel belongs to channels of this name. `None`, or a channel of a generated guide, forgets what
/// was learned about the name. Notes the changes.
pub(super) fn learn(
    write: &mut Write<'_>,
    channel: &Channel,
    guide: Option<&GuideChannel>,
    log: &mut UndoLog,
) -> Result<(), Refusal> {
    let group = channel.group.map(|it| write.get::<Group>(it.0)).transpose()?.flatten();
    let subject = Subject {
        name: &channel.name,
        tvg_id: channel.tvg_id.as_deref(),
        station: channel.guide_station.as_deref(),
        group: group.as_ref().map(|it| it.name.as_str()),
    };
    let Some(name) = AliasName::from_channel(&subject) else { return Ok(()) };
    let known = write.by::<GuideAlias>("name", name.as_str())?.into_iter().next();
    let source = guide.map(|it| write.get::<GuideSource>(it.source.0)).transpose()?.flatten();
    let wanted = guide
        .filter(|_| source.is_some_and(|it| it.kind != GuideSourceKind::Generated))
        .filter(|it| !has_name(it, &channel.name) || !log.has_aliases(SAME_NAMES_MAX));
    let is_known = known.as_ref().zip(wanted).is_some_and(|(alias, guide)| {
        alias.source == guide.source && alias.key == guide.key && alias.tvg_id == channel.tvg_id
    });
    if is_known {
        return Ok(());
    }
    if let Some(known) = known {
        write.remove::<GuideAlias>(known.id)?;
        log.alias_deleted(known);
    }
    if let Some(guide) = wanted {
        let id = write.next_id::<GuideAlias>()?;
        // Ids are given in order, so the oldest beyond the maximum has this one, if it still exists.
        let oldest = u32::try_from(GUIDE_ALIASES_MAX).ok().and_then(|it| id.checked_sub(it));
        if let Some(oldest) = oldest.map(|it| write.get::<GuideAlias>(it)).transpose()?.flatten() {
            write.remove::<GuideAlias>(oldest.id)?;
            log.alias_deleted(oldest);
        }
        let alias = GuideAlias {
            id,
            name,
            channel_name: channel.name.clone(),
            tvg_id: channel.tvg_id.clone(),
            source: guide.source,
            key: guide.key.clone(),
            learned_at: now_ms(),
        };
        write.put(&alias)?;
        log.alias_created(&alias);
    }
    Ok(())
}

/// Returns whether a guide channel has the name of a channel, apart from spelling.
fn has_name(guide: &GuideChannel, name: &str) -> bool {
    let rules = NameRules::default();
    let of_channel = NormalName::new(name, &rules);
    let is_same = |it: &String| {
        let it = NormalName::new(it, &rules);
        it.core() == of_channel.core() && it.shift == of_channel.shift
    };
    guide.names.iter().any(is_same)
}
