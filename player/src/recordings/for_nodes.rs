//! Files of recordings on this node, for the players of other nodes.

use domain::recording::RecordedFile;
use http::Uri;
use node::recordings::RECORDINGS_PATH;
use server::reply::Refusal;
use url::form_urlencoded;
use warp::reply::Response as Reply;

use super::file::{FileRequest, FileSelection, serve};
use super::hls::file_playlist;
use super::parts::one_part;
use super::picture::picture_here;

/// Serves the file of a recording that this node has, its playlist or its picture, for another node, which has checked that its
/// player may have it.
///
/// # Errors
/// This node does not have it.
pub async fn answer_node(request: &FileRequest<'_>, uri: &Uri) -> Result<Reply, Refusal> {
    let not_found = || Refusal::not_found("Not found.");
    let path = uri.path().strip_prefix(RECORDINGS_PATH).unwrap_or_default();
    let mut segments = path.split('/');
    let mut number = || segments.next().and_then(|it| it.parse::<u32>().ok()).ok_or_else(not_found);
    let (id, number) = (number()?, number()?);
    let recording = request.context.models.recordings.load().get(id).cloned().ok_or_else(not_found)?;
    let one = one_part(&recording, number).ok_or_else(not_found)?;
    let is_here = |it: &RecordedFile| request.context.recorder.folder().is_some_and(|folder| folder.has(it));
    // It is not passed on again.
    if !one.file.as_ref().is_some_and(is_here) {
        return Err(not_found());
    }
    let query: Vec<_> = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).collect();
    let value = |name: &str| query.iter().find(|it| it.0 == name).map(|it| &*it.1);
    match segments.next() {
        None => {
            let is_copy = value("cut").is_some();
            let selection = FileSelection { start: value("start"), part: None, is_copy };
            serve(request, &one, selection, None).await
        }
        Some("hls") => {
            let text = file_playlist(request.context, &one, value("file").ok_or_else(not_found)?).await?;
            Ok(Reply::new(text.into()))
        }
        Some("picture") => {
            Ok(Reply::new(picture_here(request.context, &one).await?.ok_or_else(not_found)?.into()))
        }
        Some(_) => Err(not_found()),
    }
}
