//! Whether two recordings are of the same airing.

use super::{RecordedProgramme, Recording};

/// Maximum difference of the starts and of the ends of one airing in two guides or programs, in milliseconds.
const DIFFERENCE_MAX_MS: i64 = 5 * 60_000;

impl Recording {
    /// Returns whether another recording of the same user is of the same airing: of the same channel, and with the same
    /// times, or of the same programme at about the same times.
    pub fn is_of_same_airing(&self, other: &Self) -> bool {
        let is_near = |a: i64, b: i64| a.saturating_sub(b).saturating_abs() <= DIFFERENCE_MAX_MS;
        let has_same_times = (self.start, self.end) == (other.start, other.end);
        (self.channel, self.owner) == (other.channel, other.owner)
            && match (&self.programme, &other.programme) {
                (Some(one), Some(other_one)) if one.names(other_one).is_some() => {
                    one.names(other_one) == Some(true)
                        && is_near(self.start, other.start)
                        && is_near(self.end, other.end)
                }
                (one, other_one) => {
                    let id = |it: &Option<RecordedProgramme>| it.as_ref().and_then(|it| it.id.clone());
                    has_same_times && agree(id(one), id(other_one))
                }
            }
    }
}

impl RecordedProgramme {
    /// Returns whether another programme has the same title, sub-title, season and episode, as far as both say them. `None`
    /// without a title of both.
    fn names(&self, other: &Self) -> Option<bool> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let titles = [words(&self.title), words(&other.title)];
        if titles.iter().any(String::is_empty) {
            return None;
        }
        let sub_title = |it: &Self| it.sub_title.as_deref().map(words).filter(|it| !it.is_empty());
        Some(
            titles[0] == titles[1]
                && agree(sub_title(self), sub_title(other))
                && agree(self.season, other.season)
                && agree(self.episode, other.episode),
        )
    }
}

/// Returns whether two values are equal, as far as both are known.
fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{ChannelId, RecordingId, UserId};

    const MINUTE: i64 = 60_000;

    fn recording(channel: u32, start: i64, programme: Option<(&str, Option<u32>)>) -> Recording {
        let times = start..start + 30 * MINUTE;
        let programme = programme.map(|(title, episode)| RecordedProgramme {
            title: title.to_owned(),
            episode,
            ..RecordedProgramme::default()
        });
        Recording {
            programme,
            ..Recording::new(RecordingId(1), ChannelId(channel), Uuid::nil(), "News", times, 0)
        }
    }

    #[test]
    fn recordings_of_the_same_programme_at_about_the_same_time_are_of_one_airing() {
        let first = recording(1, 0, Some(("Twice", None)));
        for (other, expected) in [
            (recording(1, 0, Some(("Twice", None))), true),
            (recording(1, 4 * MINUTE, Some((" twice ", Some(3)))), true),
            (recording(1, 0, None), true),
            (recording(1, 6 * MINUTE, Some(("Twice", None))), false),
            (recording(1, 0, Some(("Other", None))), false),
            (recording(1, MINUTE, None), false),
            (recording(1, MINUTE, Some(("", None))), false),
            (recording(2, 0, Some(("Twice", None))), false),
            (Recording { owner: Some(UserId(7)), ..recording(1, 0, None) }, false),
        ] {
            assert_eq!(first.is_of_same_airing(&other), expected, "{other:?}");
            assert_eq!(other.is_of_same_airing(&first), expected, "{other:?}");
        }
        let of_guide = |id: &str| {
            let programme = RecordedProgramme { id: Some(id.to_owned()), ..RecordedProgramme::default() };
            Recording { programme: Some(programme), ..recording(1, 0, None) }
        };
        assert!(of_guide("77").is_of_same_airing(&of_guide("77")));
        assert!(!of_guide("77").is_of_same_airing(&of_guide("78")));
        let third = recording(1, 0, Some(("Twice", Some(3))));
        assert!(!third.is_of_same_airing(&recording(1, 0, Some(("Twice", Some(4))))));
    }
}
