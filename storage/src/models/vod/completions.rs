//! What a catalogue of films and series answered about stored titles, and joining the titles that it knows as one.

use domain::ids::EpisodeId;
use domain::vod::{Completion, Episode, EpisodeFacts, TitleId, TitleIndex, TitleKind};

use super::VodTitles;
use super::admin::{current, merge, priorities_in};
use super::landing::LandError;
use crate::error::Result;
use crate::records::vod::series_key;
use crate::write::Write;

/// Titles whose answers one write removes. A series has its episodes besides.
const TITLES_PER_WRITE: usize = 20;

/// The answer about a title, and those about its episodes.
#[derive(Debug, Clone)]
pub struct CompletedRecord {
    pub title: TitleId,
    pub completion: Completion,
    pub episodes: Vec<(EpisodeId, EpisodeFacts)>,
}

impl VodTitles {
    /// Stores answers in one commit; blocks. Titles and episodes that are gone are left out.
    pub fn put_completions(&self, completed: Vec<CompletedRecord>, now: i64) -> Result<()> {
        self.store.write_blocking(move |write| {
            completed.into_iter().try_for_each(|it| put_completion(write, it, now))
        })
    }

    /// Removes all answers, so that titles have the values of their accounts again. Returns the number of titles. Several
    /// commits; blocks.
    ///
    /// # Errors
    /// The store fails, or `is_stopped` returned true.
    pub fn remove_completions(&self, now: i64, is_stopped: &dyn Fn() -> bool) -> Result<usize, LandError> {
        let _only_one = self.landing.lock();
        let mut ids = Vec::new();
        self.for_each(|title| ids.extend(title.completion.is_some().then_some(title.id)))?;
        for some in ids.chunks(TITLES_PER_WRITE) {
            if is_stopped() {
                return Err(LandError::Stopped);
            }
            let some = some.to_vec();
            self.store.write_blocking(move |write| {
                some.iter().try_for_each(|it| remove_completion(write, *it, now))
            })?;
        }
        Ok(ids.len())
    }

    /// Merges the titles that have an id of an external catalogue in common. Returns how many were merged. Several commits;
    /// blocks.
    ///
    /// # Errors
    /// The store fails, or `is_stopped` returned true.
    pub fn join_same(&self, now: i64, is_stopped: &dyn Fn() -> bool) -> Result<u64, LandError> {
        let _only_one = self.landing.lock();
        let mut n = 0;
        for kind in TitleKind::ALL {
            let mut index = TitleIndex::default();
            self.while_each_id(
                |id| id.kind() == kind,
                |title| {
                    index.add(&title);
                    !is_stopped()
                },
            )?;
            for (into, from, reason) in index.take_same() {
                if is_stopped() {
                    return Err(LandError::Stopped);
                }
                let is_merged = self.store.write_blocking(move |write| {
                    let priorities = priorities_in(write)?;
                    merge(write, into, from, &reason, &priorities, now)
                })?;
                n += u64::from(is_merged);
            }
        }
        Ok(n)
    }
}

fn put_completion(write: &mut Write<'_>, completed: CompletedRecord, now: i64) -> Result<()> {
    let CompletedRecord { title, mut completion, episodes } = completed;
    let Some(mut title) = current(write, title)? else { return Ok(()) };
    let is_changed = title.completion.as_ref().is_none_or(|it| it.facts != completion.facts);
    if is_changed {
        title.updated_at = now;
    }
    completion.asked_at = now;
    title.completion = Some(Box::new(completion));
    write.put(&title)?;
    for (id, facts) in episodes {
        let Some(mut episode) = write.get::<Episode>(id.0)?.filter(|it| it.series == title.id) else {
            continue;
        };
        if episode.completion.as_deref() != Some(&facts) {
            episode.completion = Some(Box::new(facts));
            episode.updated_at = now;
            write.put(&episode)?;
        }
    }
    Ok(())
}

fn remove_completion(write: &mut Write<'_>, id: TitleId, now: i64) -> Result<()> {
    let Some(mut title) = current(write, id)? else { return Ok(()) };
    if title.completion.take().is_some_and(|it| it.facts.is_some()) {
        title.updated_at = now;
    }
    write.put(&title)?;
    if title.id.kind() == TitleKind::Series {
        for mut episode in write.by::<Episode>("series", series_key(title.id))? {
            if episode.completion.take().is_some() {
                episode.updated_at = now;
                write.put(&episode)?;
            }
        }
    }
    Ok(())
}
