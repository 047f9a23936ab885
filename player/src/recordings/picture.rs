//! The picture beside the file of a recording, on this node or on the one that has the file.

use std::io::{self, Read as _};

use bytes::Bytes;
use domain::recording::Recording;
use media::spawn_blocking;
use node::recordings::picture_of;
use server::reply::Refusal;
use services::logo_cache::LOGO_BYTES_MAX;

use super::file::unreadable;
use super::parts::{down, elsewhere};
use crate::context::PlayerContext;

/// Returns the picture of a recording; `None` if it has none.
///
/// # Errors
/// It cannot be read, or its node is down.
pub async fn picture(context: &PlayerContext, recording: &Recording) -> Result<Option<Bytes>, Refusal> {
    if path(recording).is_none() {
        return Ok(None);
    }
    match elsewhere(context, recording)? {
        None => picture_here(context, recording).await,
        Some(node) => picture_of(&context.nodes, &node, recording).await.map_err(|_| down(&node.name)),
    }
}

/// Returns the picture of a recording whose file is on this node; `None` if it has none.
///
/// # Errors
/// It cannot be read.
pub async fn picture_here(context: &PlayerContext, recording: &Recording) -> Result<Option<Bytes>, Refusal> {
    let (Some(path), Some(folder)) = (path(recording), context.recorder.folder().cloned()) else {
        return Ok(None);
    };
    let read = spawn_blocking(move || {
        let Some(file) = folder.open(&path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(LOGO_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(Some(bytes.into()))
    });
    let read = read.await.map_err(|_| Refusal::fault("read the picture of a recording"))?;
    read.map_err(|error| unreadable(&error))
}

fn path(recording: &Recording) -> Option<String> {
    recording.after.artwork.as_ref()?.path.clone()
}
