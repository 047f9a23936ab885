//! The parameters with which players of HLS with low latency ask for playlists.

#![expect(non_snake_case, reason = "the names of the parameters are those of RFC 8216bis")]

use resource_derive::Query;
use server::reply::Refusal;

/// The form of a media playlist.
#[derive(Debug, Default, Query)]
pub(super) struct ReloadQuery {
    /// Number of the segment that the playlist has to contain: the answer waits for it.
    #[field(chars_max = 30, example = "1764190000")]
    _HLS_msn: Option<String>,
    /// Number of the part of that segment.
    #[field(chars_max = 30, example = "2")]
    _HLS_part: Option<String>,
    /// `YES` for a playlist without the segments that the player knows.
    #[field(chars_max = 30, example = "YES")]
    _HLS_skip: Option<String>,
}

impl ReloadQuery {
    /// Returns the segment that the playlist has to contain, and the part of it.
    pub(super) fn wanted(&self) -> Result<(Option<u64>, Option<u32>), Refusal> {
        let sequence = number(self._HLS_msn.as_deref(), "_HLS_msn")?;
        let part = number(self._HLS_part.as_deref(), "_HLS_part")?;
        if part.is_some() && sequence.is_none() {
            return Err(Refusal::field("_HLS_part", "A part needs the number of its segment, _HLS_msn."));
        }
        // A larger number is too far ahead too.
        Ok((sequence, part.map(|it| u32::try_from(it).unwrap_or(u32::MAX))))
    }

    /// Returns whether the player asks for a playlist without the segments that it knows.
    pub(super) fn skips(&self) -> bool {
        self._HLS_skip.as_deref().is_some_and(|it| it == "YES" || it == "v2")
    }
}

fn number(text: Option<&str>, name: &'static str) -> Result<Option<u64>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Refusal::field(name, "A valid number is required."))
}
