//! Recordings whose files lie on several nodes: reports of files to the node that writes the records, and files for the players
//! of other nodes.
//!
//! A node that asks for a file has checked that its player may have it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use actors::{FileReport, RecordingsFolder, ReportFiles};
use bytes::Bytes;
use domain::ids::RecordingId;
use domain::recording::{RecordedFile, Recording};
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyDataStream, BodyExt, Full, Limited};
use hyper::body::Incoming;
use server::reply::Refusal;
use services::logo_cache::LOGO_BYTES_MAX;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use url::form_urlencoded;
use warp::reply::Response as Reply;

use super::forward::remove_hop_headers;
use super::peers::OtherNode;
use super::time_limits::{RECORDING_ANSWER_TIMEOUT, REPORT_TIMEOUT};
use super::work::{NodeWork, STOPPING};
use crate::context::NodeContext;

/// Files of recordings on the node port: below it, the id of a recording and the number of a part, and `hls` for a playlist or
/// `picture` for its picture.
pub const RECORDINGS_PATH: &str = "/node/v1/recordings/";
/// Path on the node port.
pub(super) const REPORT_PATH: &str = "/node/v1/recordings/report";
/// Maximum size of a report and of its answer.
pub(super) const REPORT_BYTES_MAX: usize = 64 << 10;
/// Maximum size of a playlist.
const PLAYLIST_BYTES_MAX: usize = 16 << 20;

/// Sends reports of files to the node that writes the records.
pub struct Reporter(
    /// Weak, because it keeps the reporter.
    pub Weak<NodeContext>,
);

impl ReportFiles for Reporter {
    fn report(&self, report: FileReport) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move {
            let context = self.0.upgrade().ok_or(STOPPING)?;
            let node = context.node().ok_or("this gateway is not a node of a cluster")?;
            let writer = node.configuration.view().writer.ok_or("no node writes the configuration")?;
            let running = node.others.running();
            let other = running.iter().find(|it| it.id == writer.0);
            let other = other.ok_or("the node that writes the configuration is not known")?;
            let body = serde_json::to_vec(&report).map_err(|it| it.to_string())?;
            let request = Request::builder().method(Method::POST).uri(REPORT_PATH);
            let request = request.body(Full::new(Bytes::from(body))).map_err(|it| it.to_string())?;
            let sending = node.others.exchange(other, request, REPORT_BYTES_MAX);
            let sent = timeout(REPORT_TIMEOUT, sending).await;
            sent.unwrap_or_else(|_| Err("no answer in time".to_owned())).map(drop)
        })
    }
}

/// Answers another node with a file of this one, or with its playlist.
pub(super) async fn answer(work: &NodeWork, method: Method, uri: Uri, headers: HeaderMap) -> Reply {
    let gateway = Arc::clone(&work.gateway);
    let answered = work.run(|_| gateway.recording(method, uri, headers));
    let answered = answered.await.unwrap_or_else(|| Err(Refusal::unavailable(STOPPING)));
    answered.unwrap_or_else(Refusal::into_response)
}

/// Requests the playlist of a part from the node that has it. `file` is the address of the part for players.
///
/// # Errors
/// Why there is none, for people.
pub async fn playlist_of(
    context: &NodeContext,
    node: &OtherNode,
    recording: RecordingId,
    number: u32,
    file: &str,
) -> Result<String, String> {
    let others = &context.node().ok_or("this gateway is not a node of a cluster")?.others;
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("file", file).finish();
    let request = Request::get(format!("{RECORDINGS_PATH}{recording}/{number}/hls?{query}"));
    let request = request.body(Full::default()).map_err(|it| it.to_string())?;
    let asked = timeout(RECORDING_ANSWER_TIMEOUT, others.exchange(node, request, PLAYLIST_BYTES_MAX)).await;
    let text = asked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
    let text = text.and_then(|(_, body)| String::from_utf8(body.into()).map_err(|it| it.to_string()));
    text.map_err(|reason| format!("The node {} has no playlist of it: {reason}", node.name))
}

/// Requests the picture of a recording from the node that has its file. `None` if it is gone.
///
/// # Errors
/// The node does not send it in time.
pub async fn picture_of(
    context: &NodeContext,
    node: &OtherNode,
    recording: &Recording,
) -> Result<Option<Bytes>, String> {
    let path = format!("{}/{}/picture", recording.id, recording.parts().count());
    let asking = async {
        let answer = NodeAnswer::request(context, node, Method::GET, &path, HeaderMap::new()).await?;
        match answer.status() {
            StatusCode::OK => {
                let body = Limited::new(answer.response.into_body(), LOGO_BYTES_MAX as usize).collect();
                Ok(Some(body.await.map_err(|it| it.to_string())?.to_bytes()))
            }
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(format!("status {status}")),
        }
    };
    timeout(RECORDING_ANSWER_TIMEOUT, asking).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

/// The files of recordings that can be read now.
pub struct ReachableFiles {
    folder: Option<RecordingsFolder>,
    running: Vec<String>,
}

impl ReachableFiles {
    pub fn now(context: &NodeContext) -> Self {
        let running = context.node().map(|it| it.others.running()).unwrap_or_default();
        let running = running.into_iter().map(|it| it.name).collect();
        Self { folder: context.recorder.folder().cloned(), running }
    }

    /// Returns whether a file is on this node, or on one that runs.
    pub fn has(&self, file: &RecordedFile) -> bool {
        self.folder.as_ref().is_none_or(|it| it.has(file))
            || file.node.as_ref().is_some_and(|node| self.running.contains(node))
    }

    /// Returns the other node that has a file; `None` if it is on this one.
    ///
    /// # Errors
    /// The name of the node, which is down.
    pub fn node_of(context: &NodeContext, file: &RecordedFile) -> Result<Option<OtherNode>, String> {
        if context.recorder.folder().is_none_or(|it| it.has(file)) {
            return Ok(None);
        }
        let running = context.node().map(|it| it.others.running()).unwrap_or_default();
        let found = running.into_iter().find(|it| Some(&it.name) == file.node.as_ref());
        found.map(Some).ok_or_else(|| file.node.clone().unwrap_or_default())
    }
}

/// The answer of another node, whose body still arrives.
pub struct NodeAnswer {
    response: Response<Incoming>,
    connection: AbortOnDropHandle<()>,
}

impl NodeAnswer {
    /// The body arrives as long as the connection is kept.
    pub(super) fn new(response: Response<Incoming>, connection: AbortOnDropHandle<()>) -> Self {
        Self { response, connection }
    }

    /// Requests something of recordings from the node that has their files. The path is that below `/node/v1/recordings/`.
    ///
    /// # Errors
    /// The node does not answer in time.
    pub async fn request(
        context: &NodeContext,
        node: &OtherNode,
        method: Method,
        path: &str,
        headers: HeaderMap,
    ) -> Result<Self, String> {
        let others = &context.node().ok_or("this gateway is not a node of a cluster")?.others;
        let request = Request::builder().method(method).uri(format!("{RECORDINGS_PATH}{path}"));
        let mut request = request.body(Full::default()).map_err(|it| it.to_string())?;
        *request.headers_mut() = headers;
        let asking = others.open(node, request);
        let answered = timeout(RECORDING_ANSWER_TIMEOUT, asking).await;
        let opened = answered.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let (response, connection) = opened.inspect_err(|reason| {
            warn!(node = node.name, "failed to read a recording of another node: {reason}");
        })?;
        Ok(Self { response, connection })
    }

    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the content as it arrives.
    pub fn into_blocks(self) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
        let Self { response, connection } = self;
        BodyDataStream::new(response.into_body()).map(move |block| {
            let _open = &connection;
            block.map_err(io::Error::other)
        })
    }

    /// Returns the answer for a player. `held` is kept until it is sent.
    pub fn into_reply(self, held: impl Send + Sync + 'static) -> Reply {
        let (status, mut headers) = (self.status(), self.headers().clone());
        remove_hop_headers(&mut headers);
        let blocks = self.into_blocks().map(move |block| {
            let _held = &held;
            block
        });
        let mut reply = warp::Reply::into_response(warp::reply::stream(blocks));
        *reply.status_mut() = status;
        *reply.headers_mut() = headers;
        reply
    }
}
