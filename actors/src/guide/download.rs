//! Downloads a guide to a temporary file, unless it is the one that was accepted last.
//!
//! The whole answer is on the disk before it is read: a download that breaks off changes nothing, the same content is
//! recognised by its hash before it is unpacked, and a slow server keeps no half-written guide open.

use std::fs::File;
use std::io::{Seek, Write};

use domain::egress::Reach;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use sha2::{Digest, Sha256};

use super::error::GuideError;
use super::input::{ContentMark, GuideContext, GuideSink};
use super::progress::GuidePhase;
use crate::fetch::{FetchBody, Validators};

/// A download without an announced length shows half of its phase after this many bytes.
const TYPICAL_BYTES: u64 = 32 << 20;

/// The result of a download.
pub(super) enum Download {
    /// The server or the hash says that the content is the one that was accepted last.
    Unchanged(ContentMark),
    /// A new content, at its start.
    New { file: File, n_bytes: u64, mark: ContentMark },
}

/// Downloads what this address contains.
pub(super) fn download(
    context: &GuideContext,
    url: &SourceUrl,
    headers: &RequestHeaders,
    reach: Reach,
    sink: &mut dyn GuideSink,
) -> Result<Download, GuideError> {
    sink.progress(GuidePhase::Fetching, 0)?;
    let (known, is_comparable) = known(context);
    let asked = context.fetch.get_if_changed(url.expose(), headers, reach, &known);
    let Some(body) = context.wait(asked)?.map_err(GuideError::Fetch)? else {
        return Ok(Download::Unchanged(ContentMark {
            etag: known.etag,
            last_modified: known.last_modified,
            digest: context.state.digest,
            origin: context.state.origin,
        }));
    };
    let Validators { etag, last_modified } = body.validators().clone();
    let mut mark = ContentMark { etag, last_modified, digest: None, origin: body.origin() };
    let (mut file, n_bytes, digest) = receive(context, body, sink)?;
    mark.digest = Some(digest);
    if is_comparable && context.state.digest == mark.digest {
        return Ok(Download::Unchanged(mark));
    }
    file.rewind()?;
    Ok(Download::New { file, n_bytes, mark })
}

/// Returns the headers for a conditional request, and whether the hash of the last content counts.
fn known(context: &GuideContext) -> (Validators, bool) {
    if context.force || !context.has_guide {
        return (Validators::default(), false);
    }
    let state = &context.state;
    (Validators { etag: state.etag.clone(), last_modified: state.last_modified.clone() }, true)
}

/// Writes a body to a temporary file. Returns the file, its length in bytes and its hash.
fn receive(
    context: &GuideContext,
    mut body: FetchBody,
    sink: &mut dyn GuideSink,
) -> Result<(File, u64, [u8; 32]), GuideError> {
    let mut file = context.files.unnamed()?;
    let (mut n_bytes, mut hash) = (0_u64, Sha256::new());
    while let Some(piece) = context.wait(body.next())?.map_err(GuideError::BrokenOff)? {
        file.write_all(&piece)?;
        hash.update(&piece);
        n_bytes += piece.len() as u64;
        sink.progress(GuidePhase::Fetching, share(n_bytes, body.announced()))?;
    }
    Ok((file, n_bytes, hash.finalize().into()))
}

/// Returns the percentage of a download. Without an announced length it approaches the end without reaching it.
fn share(n_bytes: u64, announced: Option<u64>) -> u8 {
    let whole = announced.unwrap_or(n_bytes + TYPICAL_BYTES).max(1);
    u8::try_from((n_bytes.saturating_mul(100) / whole).min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_download_never_exceeds_a_hundred() {
        for (n_bytes, announced, expected) in [
            (0, Some(0), 0),
            (0, None, 0),
            (50, Some(100), 50),
            (300, Some(100), 100),
            (u64::MAX / 50, Some(10), 100),
            (TYPICAL_BYTES, None, 50),
        ] {
            assert_eq!(share(n_bytes, announced), expected, "{n_bytes} of {announced:?}");
        }
    }
}
