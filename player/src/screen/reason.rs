//! The reasons that a clip can show, and their texts.

use domain::core_settings::ReasonOnScreen;
use http::StatusCode;
use server::reply::TunerError;

/// A reason why a stream does not start, as viewers read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenReason {
    AllInUse,
    NothingPlays,
    Busy,
    NotAllowed,
    UnknownChannel,
}

impl ScreenReason {
    pub(super) const ALL: [Self; 5] =
        [Self::AllInUse, Self::NothingPlays, Self::Busy, Self::NotAllowed, Self::UnknownChannel];

    /// Returns the reason of a refusal, if the option covers it.
    pub(super) fn from_refusal(
        option: ReasonOnScreen,
        status: StatusCode,
        error: Option<TunerError>,
    ) -> Option<Self> {
        let reason = match (status, error) {
            (StatusCode::SERVICE_UNAVAILABLE, Some(error)) => match error {
                TunerError::AllTunersInUse => Self::AllInUse,
                TunerError::NoVideoData | TunerError::TuneFailed => Self::NothingPlays,
                TunerError::SystemBusy | TunerError::UnknownChannel => Self::Busy,
            },
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => Self::NotAllowed,
            (StatusCode::NOT_FOUND, _) => Self::UnknownChannel,
            _ => return None,
        };
        let is_covered = match option {
            ReasonOnScreen::Off => false,
            ReasonOnScreen::Unavailable => status == StatusCode::SERVICE_UNAVAILABLE,
            ReasonOnScreen::All => true,
        };
        is_covered.then_some(reason)
    }

    /// Returns the lines of text, in ASCII and of at most 36 characters.
    pub(super) fn lines(self) -> [&'static str; 2] {
        match self {
            Self::AllInUse => ["All connections are in use.", "Please try again in a moment."],
            Self::NothingPlays => ["This channel does not play now.", "Please try another channel."],
            Self::Busy => ["The gateway is busy.", "Please try again in a moment."],
            Self::NotAllowed => ["You may not watch this channel.", "Please check name and password."],
            Self::UnknownChannel => ["This channel does not exist.", "Please refresh the list."],
        }
    }

    /// Returns the start of the name of its file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AllInUse => "all-in-use",
            Self::NothingPlays => "nothing-plays",
            Self::Busy => "busy",
            Self::NotAllowed => "not-allowed",
            Self::UnknownChannel => "unknown-channel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_decides_which_refusals_are_shown() {
        let full = (StatusCode::SERVICE_UNAVAILABLE, Some(TunerError::AllTunersInUse));
        let hidden = (StatusCode::NOT_FOUND, Some(TunerError::UnknownChannel));
        for (option, of_full, of_hidden) in [
            (ReasonOnScreen::Off, None, None),
            (ReasonOnScreen::Unavailable, Some(ScreenReason::AllInUse), None),
            (ReasonOnScreen::All, Some(ScreenReason::AllInUse), Some(ScreenReason::UnknownChannel)),
        ] {
            assert_eq!(ScreenReason::from_refusal(option, full.0, full.1), of_full, "{option:?}");
            assert_eq!(ScreenReason::from_refusal(option, hidden.0, hidden.1), of_hidden, "{option:?}");
            let missing_route = ScreenReason::from_refusal(option, StatusCode::METHOD_NOT_ALLOWED, None);
            assert_eq!(missing_route, None);
        }
    }
}
