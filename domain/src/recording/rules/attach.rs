//! Decides which recording belongs to which showing of the guide.

use std::collections::HashMap;
use std::sync::Arc;

use super::normal_text::is_same;
use super::plan::{Airing, Plan};
use crate::guide::marks::{MarkedText, plain};
use crate::recording::{FollowedAiring, RecordedProgramme, Recording};

/// How far a programme can move and still be recognised by its title alone, or while it is recorded, in milliseconds.
const MOVED_MS_MAX: i64 = 6 * 60 * 60 * 1000;

/// Positions of recordings by those of their airings.
type Attached = HashMap<usize, usize>;

impl Plan<'_, '_> {
    /// Returns the position of the recording of each airing.
    pub(super) fn attach(
        &self,
        live: &[&Arc<Recording>],
        airings: &[Arc<Airing>],
        moved_max: i64,
    ) -> Attached {
        let mut attached = HashMap::new();
        let followed = |at: usize| Some((*live.get(at)?, live.get(at)?.followed.as_ref()?));
        let mut open: Vec<usize> = (0..live.len()).filter(|at| followed(*at).is_some()).collect();
        // First those that another offset of the guide has moved, then those that have not moved, before others can take
        // their programmes.
        open.retain(|at| {
            let is_it = |it: &Airing| followed(*at).is_some_and(|(of, from)| self.is_shifted(of, from, it));
            !attach_first(&mut attached, airings, *at, is_it)
        });
        open.retain(|at| {
            let is_it =
                |it: &Airing| followed(*at).is_some_and(|(of, from)| self.has_stayed(of, from, it, airings));
            !attach_first(&mut attached, airings, *at, is_it)
        });
        for at in open {
            let Some((recording, from)) = followed(at) else { continue };
            // A guide without any programme at that time is incomplete, and says nothing about a move.
            if !from.guide_key.is_empty() && !self.input.covered.contains(&recording.id) {
                continue;
            }
            let is_it = |it: &Airing| self.has_moved(recording, from, it, moved_max, (airings, &attached));
            let free = airings.iter().enumerate().filter(|(n, it)| !attached.contains_key(n) && is_it(it));
            let nearest = free.min_by_key(|(_, it)| (!is_on(it, from), distance(it, from), it.start));
            if let Some((n, _)) = nearest {
                attached.insert(n, at);
            }
        }
        attached
    }

    /// Returns whether this is the programme of a recording at another time because an offset of the guide has changed: its
    /// place in the guide is the same.
    fn is_shifted(&self, recording: &Recording, from: &FollowedAiring, it: &Airing) -> bool {
        let has_same_place = match (&it.programme, &recording.programme) {
            (Some(one), Some(other)) => one.is_same_place(other),
            _ => false,
        };
        has_same_place
            && it.start != from.start
            && it.end > self.input.now
            && is_on(it, from)
            && it.channels.contains(&from.channel)
            && is_same_programme(recording, from, it)
            && (!recording.has_begun(self.input.now) || distance(it, from) <= MOVED_MS_MAX)
    }

    /// Returns whether this is the programme of a recording at the same time.
    fn has_stayed(
        &self,
        recording: &Recording,
        from: &FollowedAiring,
        it: &Airing,
        airings: &[Arc<Airing>],
    ) -> bool {
        let now = self.input.now;
        let has_gone = || !airings.iter().any(|it| it.start > now && it.is_episode(from.episode));
        // The guide can say later which episode it is, but not if it shows the episode elsewhere.
        is_on(it, from)
            && it.start == from.start
            && (is_same_programme(recording, from, it) || (has_same_title(it, recording) && has_gone()))
    }

    /// Returns whether a recording can follow its programme to this showing.
    fn has_moved(
        &self,
        recording: &Recording,
        from: &FollowedAiring,
        it: &Airing,
        moved_max: i64,
        (airings, attached): (&[Arc<Airing>], &Attached),
    ) -> bool {
        let now = self.input.now;
        let is_same_episode = match from.episode.is_known() && it.episode.is_known() {
            true => it.is_episode(from.episode) && distance(it, from) <= moved_max,
            false => {
                // A title is too little for a second recording of one episode.
                let is_of_other = |n: &usize| airings.get(*n).is_some_and(|of| of.episode == it.episode);
                let is_wanted = || self.is_taken(recording.owner, it) || attached.keys().any(is_of_other);
                (!it.episode.is_known() || !is_wanted())
                    && distance(it, from) <= MOVED_MS_MAX.min(moved_max)
                    && has_same_title(it, recording)
            }
        };
        let can_follow = match recording.has_begun(now) {
            true => is_on(it, from) && it.end > now && distance(it, from) <= MOVED_MS_MAX,
            false => it.start > now,
        };
        is_same_episode && can_follow
    }
}

/// Attaches a recording to the first free airing that is its own. Returns whether there was one.
fn attach_first(
    attached: &mut Attached,
    airings: &[Arc<Airing>],
    at: usize,
    is_it: impl Fn(&Airing) -> bool,
) -> bool {
    let found = airings.iter().enumerate().position(|(n, it)| !attached.contains_key(&n) && is_it(it));
    found.is_some_and(|n| attached.insert(n, at).is_none())
}

/// Returns whether two showings at one place of the guide are the same programme: of the episode, or of the title if one of them
/// says no episode.
fn is_same_programme(recording: &Recording, from: &FollowedAiring, it: &Airing) -> bool {
    let is_known = from.episode.is_known() && it.episode.is_known();
    it.is_episode(from.episode) || (!is_known && has_same_title(it, recording))
}

fn distance(it: &Airing, from: &FollowedAiring) -> i64 {
    it.start.saturating_sub(from.start).saturating_abs()
}

fn is_on(airing: &Airing, followed: &FollowedAiring) -> bool {
    airing.guide_key.eq_ignore_ascii_case(&followed.guide_key)
}

fn has_same_title(airing: &Airing, recording: &Recording) -> bool {
    let title = |it: &Option<RecordedProgramme>| {
        it.as_ref().map(|it| plain(&it.title, MarkedText::Title).into_owned()).unwrap_or_default()
    };
    is_same(&title(&airing.programme), &title(&recording.programme))
}
