//! Recordings whose files lie on several nodes: a node reads from others what it lacks, so that players find every recording
//! everywhere.
//!
//! The parts of a recording follow one another as one file. Those of nodes that are down are left out.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use domain::ids::RecordingId;
use domain::recording::Recording;
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use http::header::{CONTENT_RANGE, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use node::peers::OtherNode;
use node::recordings::{NodeAnswer, ReachableFiles};
use route_frame::call::Call;
use server::reply::Refusal;
use tokio::sync::mpsc::{Sender, channel};
use warp::reply::Response as Reply;

use super::file::{self, FileRequest, FileSelection, PACKET_BYTES, Source, blocks, grows, no_file};
use crate::context::{PlayerCall, PlayerContext};
use crate::ranges::RangedFile;
use crate::seat::Held;

/// Blocks of a joined file that wait for the player.
const BLOCKS_MAX: usize = 2;

/// Answers with the file of a recording that the caller may play: 200, 206 or 416. The content of one that runs is followed to
/// its end.
///
/// # Errors
/// The recording has no such file, or its node is down.
pub async fn answer(
    call: &Call,
    recording: &Recording,
    selection: FileSelection<'_>,
    held: Option<Held>,
) -> Result<Reply, Refusal> {
    let request = FileRequest { context: call.player(), method: &call.method, headers: &call.headers };
    let number = match selection.part {
        Some(number) => number,
        None if recording.earlier_parts.is_empty() => 1,
        None if selection.start.is_some() => {
            return Err(Refusal::field(
                "start",
                "Several nodes have recorded parts of it. Select one with `part`.",
            ));
        }
        None => return joined(&request, recording, held).await,
    };
    let Some(one) = one_part(recording, number) else {
        return Err(if number == 1 {
            no_file()
        } else {
            Refusal::not_found("The recording has no such part.")
        });
    };
    match elsewhere(call.player(), &one)? {
        None => file::serve(&request, &one, selection, held).await,
        Some(node) => {
            let range = [RANGE, IF_RANGE].map(|name| call.headers.get(&name).map(|it| (name, it.clone())));
            let headers = range.into_iter().flatten().collect();
            let answer =
                fetch(call.player(), &node, call.method.clone(), (&one, number), selection, headers).await?;
            Ok(answer.into_reply(held))
        }
    }
}

/// Returns a recording with one part as its file.
pub fn one_part(recording: &Recording, number: u32) -> Option<Recording> {
    recording.part(usize::try_from(number).ok()?)
}

/// Returns the node that has the file of a recording; `None` if this one has it.
///
/// # Errors
/// That node is down.
pub(super) fn elsewhere(
    context: &PlayerContext,
    recording: &Recording,
) -> Result<Option<OtherNode>, Refusal> {
    let file = recording.file.as_ref().ok_or_else(no_file)?;
    ReachableFiles::node_of(&context.nodes, file).map_err(|name| down(&name))
}

/// Returns the refusal of a file whose node does not answer.
pub(super) fn down(node: &str) -> Refusal {
    Refusal::unavailable(format!("The recording is on node {node}, which is down.")).retry_soon()
}

/// Requests the file of a recording from the node that has it.
async fn fetch(
    context: &PlayerContext,
    node: &OtherNode,
    method: Method,
    (recording, number): (&Recording, u32),
    selection: FileSelection<'_>,
    headers: HeaderMap,
) -> Result<NodeAnswer, Refusal> {
    let start = selection.start.map(|it| ("start", it));
    let pairs = start.into_iter().chain(selection.is_copy.then_some(("cut", "true")));
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let path = format!("{}/{number}?{query}", recording.id);
    NodeAnswer::request(&context.nodes, node, method, &path, headers).await.map_err(|_| down(&node.name))
}

/// A part of a joined file.
struct Piece {
    number: u32,
    recording: Recording,
    /// Size in bytes; of one that grows, its size now.
    length: u64,
    place: Place,
}

enum Place {
    Here(File),
    There(OtherNode),
}

impl Piece {
    /// Opens a part. `None` if it cannot be read now.
    async fn open(
        context: &PlayerContext,
        recording: Recording,
        number: u32,
    ) -> Result<Option<Self>, Refusal> {
        let Ok(node) = elsewhere(context, &recording) else { return Ok(None) };
        let Some(node) = node else {
            let Some((file, length)) = file::open(context, &recording).await? else { return Ok(None) };
            return Ok(Some(Self { number, recording, length, place: Place::Here(file) }));
        };
        let one_byte = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-0"))]);
        let selection = FileSelection::default();
        let fetched = fetch(context, &node, Method::HEAD, (&recording, number), selection, one_byte).await;
        let Some(length) = fetched.ok().and_then(|it| whole_length(it.headers())) else { return Ok(None) };
        Ok(Some(Self { number, recording, length, place: Place::There(node) }))
    }

    /// Returns the length that is served: whole packets.
    fn length(&self) -> u64 {
        if grows(&self.recording) { self.length - self.length % PACKET_BYTES } else { self.length }
    }
}

/// Returns the length of the file of which an answer has a part.
fn whole_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit_once('/')?.1.parse().ok()
}

/// Answers with all parts that can be read now, one after the other.
async fn joined(
    request: &FileRequest<'_>,
    recording: &Recording,
    held: Option<Held>,
) -> Result<Reply, Refusal> {
    let mut pieces = Vec::new();
    for number in (1..).take(recording.parts().count()) {
        let Some(one) = one_part(recording, number) else { continue };
        pieces.extend(Piece::open(request.context, one, number).await?);
    }
    let Some(last) = pieces.last() else {
        let nodes: Vec<_> = recording.parts().filter_map(|it| it.node.as_deref()).collect();
        return Err(down(&nodes.join(", ")));
    };
    let grows = grows(&last.recording);
    let length = pieces.iter().map(Piece::length).sum();
    let numbers = pieces.iter().fold(String::new(), |mut all, it| {
        let _ = write!(all, "-{}", it.number);
        all
    });
    let tag = (!grows).then(|| format!("\"{}{numbers}-{length}\"", recording.id));
    let served = RangedFile { media_type: "video/mp2t", length, tag: tag.as_deref(), grows };
    let part = match served.part(request.headers) {
        Ok(part) => part,
        Err(unsatisfiable) => return Ok(*unsatisfiable),
    };
    let mut reply = Reply::default();
    if *request.method != Method::HEAD {
        // The whole of a file that grows has no end yet.
        let range = part.clone().unwrap_or(0..if grows { u64::MAX } else { length });
        let body = join(Arc::clone(request.context), recording.id, pieces, range, held);
        reply = warp::Reply::into_response(warp::reply::stream(body));
    }
    served.describe(&mut reply, part.as_ref());
    Ok(reply)
}

/// Reads a range of parts that follow one another.
fn join(
    context: Arc<PlayerContext>,
    id: RecordingId,
    pieces: Vec<Piece>,
    range: Range<u64>,
    held: Option<Held>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    let (sender, receiver) = channel(BLOCKS_MAX);
    actors::spawn(async move {
        let sent = tokio::select! {
            sent = send(&context, id, pieces, range, &sender) => sent,
            () = sender.closed() => return,
        };
        if let Err(error) = sent {
            // The player has left otherwise.
            let _ = sender.send(Err(error)).await;
        }
    });
    unfold((receiver, held), |(mut receiver, held)| async move {
        let block = receiver.recv().await?;
        Some((block, (receiver, held)))
    })
}

async fn send(
    context: &Arc<PlayerContext>,
    id: RecordingId,
    pieces: Vec<Piece>,
    range: Range<u64>,
    to: &Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut begin = 0;
    for piece in pieces {
        // Of a range without an end, the last part is followed.
        let follows = range.end == u64::MAX && grows(&piece.recording);
        let end = if follows { u64::MAX } else { begin + piece.length() };
        let part = range.start.max(begin)..range.end.min(end);
        let of_piece = part.start.saturating_sub(begin)..part.end.saturating_sub(begin);
        begin = end;
        if of_piece.is_empty() {
            continue;
        }
        match piece.place {
            Place::Here(file) => {
                let source = Arc::new(Source { tables: Bytes::new(), from: 0, file });
                let follows = follows.then(|| (Arc::clone(context), id));
                pass(blocks(source, of_piece, follows, None), to).await?;
            }
            Place::There(node) => {
                let range = format!("bytes={}-{}", of_piece.start, of_piece.end - 1);
                let range = HeaderValue::from_str(&range).map_err(io::Error::other)?;
                // The whole of one that grows begins at 0.
                let headers = if follows { HeaderMap::new() } else { HeaderMap::from_iter([(RANGE, range)]) };
                let wanted = (&piece.recording, piece.number);
                let fetched =
                    fetch(context, &node, Method::GET, wanted, FileSelection::default(), headers).await;
                let answer = fetched.map_err(|_| io::Error::other("the node of a part does not answer"))?;
                if !matches!(answer.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
                    return Err(io::Error::other("the node of a part does not have it"));
                }
                pass(answer.into_blocks(), to).await?;
            }
        }
    }
    Ok(())
}

/// Sends blocks until they end, or the player leaves.
async fn pass(
    blocks: impl Stream<Item = io::Result<Bytes>>,
    to: &Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut blocks = pin!(blocks);
    while let Some(block) = blocks.next().await {
        if to.send(Ok(block?)).await.is_err() {
            break;
        }
    }
    Ok(())
}
