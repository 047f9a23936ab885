//! Merges, splits and edits titles, and takes it back. With the titles of series, their episodes move.

use std::collections::{BTreeMap, HashMap};

use domain::account::Account;
use domain::ids::{AccountId, EpisodeId};
use domain::undo::UndoChange;
use domain::vod::regroup::{TitleShape, restored};
use domain::vod::{
    Episode, EpisodeAlias, EpisodeOffer, MatchReason, RelationId, Title, TitleId, TitleKind, uuid_of,
};

use super::landing::sort;
use super::random_u128;
use crate::error::Result;
use crate::records::vod::series_key;
use crate::write::Write;

/// Returns the title with this id, or the one that it was merged into.
pub(super) fn current(write: &Write<'_>, id: TitleId) -> Result<Option<Title>> {
    match write.get::<Title>(id.key())? {
        Some(title) => Ok(Some(title)),
        None => Ok(write.by::<Title>("alias", id.key().to_be_bytes())?.pop()),
    }
}

/// Merges one title into another one of the same kind; its id and its UUID lead there from then on. Returns what to keep
/// for an undo, `None` if one of them does not exist or both are the same.
pub fn merge_titles(
    write: &mut Write<'_>,
    into: TitleId,
    from: TitleId,
    now: i64,
) -> Result<Option<UndoChange>> {
    let (one, other) = (current(write, into)?, current(write, from)?);
    let (Some(one), Some(other)) = (one, other) else { return Ok(None) };
    if one.id.kind() != other.id.kind() {
        return Ok(None);
    }
    let before = vec![TitleShape::from_title(&one), TitleShape::from_title(&other)];
    let priorities = priorities_in(write)?;
    if !merge(write, one.id, other.id, &MatchReason::Admin, &priorities, now)? {
        return Ok(None);
    }
    let after = write.get::<Title>(one.id.key())?.iter().map(TitleShape::from_title).collect();
    Ok(Some(UndoChange::TitlesChanged { before, after }))
}

/// Moves relations of a title to a title of their own, which keeps them. Returns that title, and what to keep for an undo.
/// `None` if the title does not exist, has none of the relations, or would have none left.
pub fn split_title(
    write: &mut Write<'_>,
    id: TitleId,
    relations: &[RelationId],
    now: i64,
) -> Result<Option<(TitleId, UndoChange)>> {
    let Some(mut title) = current(write, id)? else { return Ok(None) };
    let before = TitleShape::from_title(&title);
    let new = next_title_id(write, title.id.kind())?;
    let uuid = uuid_of(new.key(), random_u128()?);
    let Some(mut off) = title.split_off(relations, (new, uuid), now) else { return Ok(None) };
    let priorities = priorities_in(write)?;
    sort(&mut title, &priorities);
    sort(&mut off, &priorities);
    write.put(&title)?;
    write.put(&off)?;
    regroup_episodes(write, &[title.id], &[&title, &off], now)?;
    let after = vec![TitleShape::from_title(&title), TitleShape::from_title(&off)];
    Ok(Some((off.id, UndoChange::TitlesChanged { before: vec![before], after })))
}

/// Changes the edits, the visibility and the custom properties of a title. Returns what to keep for an undo; `None` if it
/// does not exist, or nothing changed.
pub fn edit_title(
    write: &mut Write<'_>,
    id: TitleId,
    edit: impl FnOnce(&mut Title),
    now: i64,
) -> Result<Option<UndoChange>> {
    let Some(mut title) = current(write, id)? else { return Ok(None) };
    let before = TitleShape::from_title(&title);
    edit(&mut title);
    let after = TitleShape::from_title(&title);
    if before == after {
        return Ok(None);
    }
    title.updated_at = now;
    write.put(&title)?;
    Ok(Some(UndoChange::TitlesChanged { before: vec![before], after: vec![after] }))
}

/// Takes a merge, a split or an edit back. Values of accounts stay as they are now.
///
/// # Errors
/// The inner error has the names of titles that are gone or that an admin changed since. Then nothing is changed.
pub fn restore_titles(
    write: &mut Write<'_>,
    before: &[TitleShape],
    after: &[TitleShape],
    now: i64,
) -> Result<Result<(), Vec<String>>> {
    let mut present = Vec::new();
    for shape in after {
        present.extend(write.get::<Title>(shape.id.key())?);
    }
    let ids: Vec<TitleId> = present.iter().map(|it| it.id).collect();
    let mut titles = match restored(before, after, present, now) {
        Ok(titles) => titles,
        Err(changed) => return Ok(Err(changed)),
    };
    // The accounts of a merged title may have removed it since.
    titles.retain(|it| !it.relations.is_empty());
    let priorities = priorities_in(write)?;
    for id in ids.iter().filter(|id| titles.iter().all(|it| it.id != **id)) {
        write.remove::<Title>(id.key())?;
    }
    for title in &mut titles {
        sort(title, &priorities);
        write.put(title)?;
    }
    regroup_episodes(write, &ids, &titles.iter().collect::<Vec<_>>(), now)?;
    Ok(Ok(()))
}

/// Merges one title into another one. Returns false if one of them does not exist or both are the same.
pub(super) fn merge(
    write: &mut Write<'_>,
    into: TitleId,
    from: TitleId,
    reason: &MatchReason,
    priorities: &HashMap<AccountId, i32>,
    now: i64,
) -> Result<bool> {
    let (one, other) = (current(write, into)?, current(write, from)?);
    let (Some(mut one), Some(other)) = (one, other) else { return Ok(false) };
    if one.id == other.id {
        return Ok(false);
    }
    let ids = [one.id, other.id];
    write.remove::<Title>(other.id.key())?;
    one.absorb(other, reason, now);
    sort(&mut one, priorities);
    one.limit_size();
    write.put(&one)?;
    regroup_episodes(write, &ids, &[&one], now)?;
    Ok(true)
}

pub(super) fn priorities_in(write: &Write<'_>) -> Result<HashMap<AccountId, i32>> {
    Ok(write.all::<Account>()?.iter().map(|it| (it.id, it.priority)).collect())
}

/// Returns an id that no title ever had.
fn next_title_id(write: &mut Write<'_>, kind: TitleKind) -> Result<TitleId> {
    loop {
        // The key of a film is even, and that of a series with the same number follows it.
        let key = write.next_id::<Title>()?;
        if key % 2 == 0 {
            return Ok(TitleId::new(kind, key / 2).expect("half of a key is a number"));
        }
    }
}

/// Distributes the episodes of some series among the series that have their relations now.
fn regroup_episodes(write: &mut Write<'_>, of: &[TitleId], titles: &[&Title], now: i64) -> Result<()> {
    let Some(first) = titles.first().filter(|it| it.id.kind() == TitleKind::Series) else { return Ok(()) };
    let mut episodes = Vec::new();
    for id in of {
        episodes.extend(write.by::<Episode>("series", series_key(*id))?);
    }
    // The older one keeps its id.
    episodes.sort_by_key(|it| it.id);
    let holders: HashMap<RelationId, TitleId> =
        titles.iter().flat_map(|title| title.relations.iter().map(|it| (it.id, title.id))).collect();
    let mut before: BTreeMap<EpisodeId, Episode> = BTreeMap::new();
    let mut after: BTreeMap<(TitleId, u32, u32), Episode> = BTreeMap::new();
    for episode in episodes {
        before.insert(episode.id, episode.clone());
        let home = if titles.iter().any(|it| it.id == episode.series) { episode.series } else { first.id };
        let mut parts: BTreeMap<TitleId, Vec<EpisodeOffer>> = BTreeMap::new();
        let mut rest = episode;
        for offer in std::mem::take(&mut rest.offers) {
            let holder = holders.get(&offer.relation).copied().unwrap_or(home);
            parts.entry(holder).or_default().push(offer);
        }
        // The part that stays keeps the id.
        let keeper =
            if parts.contains_key(&home) { home } else { parts.keys().next().copied().unwrap_or(home) };
        rest.offers = parts.remove(&keeper).unwrap_or_default();
        for (series, offers) in parts {
            let alias = rest.aliases.pop();
            let (id, uuid) = match alias {
                Some(alias) => (alias.id, alias.uuid),
                None => {
                    let id = write.next_id::<Episode>()?;
                    (EpisodeId(id), uuid_of(id, random_u128()?))
                }
            };
            let part = Episode { id, uuid, series, offers, aliases: Vec::new(), ..rest.clone() };
            put_merged(&mut after, part);
        }
        rest.series = keeper;
        put_merged(&mut after, rest);
    }
    let kept: BTreeMap<EpisodeId, Episode> = after.into_values().map(|it| (it.id, it)).collect();
    for id in before.keys().filter(|it| !kept.contains_key(it)) {
        write.remove::<Episode>(id.0)?;
    }
    for (id, mut episode) in kept {
        if before.get(&id) != Some(&episode) {
            episode.updated_at = now;
            write.put(&episode)?;
        }
    }
    Ok(())
}

/// Adds an episode, or merges it into the one with the same series, season and number.
fn put_merged(episodes: &mut BTreeMap<(TitleId, u32, u32), Episode>, episode: Episode) {
    match episodes.entry((episode.series, episode.season, episode.number)) {
        std::collections::btree_map::Entry::Vacant(free) => drop(free.insert(episode)),
        std::collections::btree_map::Entry::Occupied(mut taken) => {
            let into = taken.get_mut();
            into.offers.extend(episode.offers);
            into.aliases.push(EpisodeAlias { id: episode.id, uuid: episode.uuid });
            into.aliases.extend(episode.aliases);
        }
    }
}
