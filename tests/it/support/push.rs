//! A program that listens at the WebSocket, with a client that is not ours.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::header::HeaderName;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response};
use tokio_tungstenite::tungstenite::protocol::Message;

use super::PATIENCE;

/// An open socket.
pub struct Listener {
    socket: WebSocketStream<TcpStream>,
    /// The answer to the upgrade.
    pub response: Response<Option<Vec<u8>>>,
}

/// How a socket ended: with a code of the gateway, or without.
pub type Closed = Option<u16>;

/// The request for an upgrade at this path.
pub fn upgrade(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
    for (name, value) in headers {
        let name: HeaderName = name.parse().expect("the name of a header");
        request.headers_mut().insert(name, HeaderValue::from_str(value).expect("the value of a header"));
    }
    request
}

impl Listener {
    /// Opens a socket; the status of the answer where it is not opened.
    pub async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Listener, u16> {
        let socket = TcpSocket::new_v4().expect("a socket");
        Listener::over(socket, address, upgrade(address, path, headers)).await
    }

    /// The same over a socket that has its options already.
    pub async fn over(socket: TcpSocket, address: SocketAddr, request: Request) -> Result<Listener, u16> {
        let socket = socket.connect(address).await.expect("the port is open");
        match timeout(PATIENCE, tokio_tungstenite::client_async(request, socket)).await.expect("an answer") {
            Ok((socket, response)) => Ok(Listener { socket, response }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("no answer to the upgrade: {error}"),
        }
    }

    /// The next frame with something in it, or how the socket ended.
    pub async fn next(&mut self) -> Result<Value, Closed> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("a frame comes, or an end") {
                Some(Ok(Message::Text(text))) => {
                    return Ok(serde_json::from_str(&text).expect("frames are JSON"));
                }
                Some(Ok(Message::Close(frame))) => {
                    // Says farewell, too.
                    let _ = self.socket.next().await;
                    return Err(frame.map(|it| it.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// The inner part of the next frame of this kind; others are passed over.
    #[track_caller]
    pub fn kind(&mut self, kind: &str) -> impl Future<Output = Value> {
        self.until(kind, |_| true)
    }

    /// The same, and it has to fit.
    #[track_caller]
    pub fn until(&mut self, kind: &str, fits: impl Fn(&Value) -> bool) -> impl Future<Output = Value> {
        let story = std::panic::Location::caller();
        let waiting = async move {
            loop {
                match self.next().await {
                    Ok(mut frame) if frame["data"]["type"] == kind && fits(&frame["data"]) => {
                        return frame["data"].take();
                    }
                    Ok(_) => {}
                    Err(closed) => panic!("{story}: no {kind}, the socket was closed: {closed:?}"),
                }
            }
        };
        async move {
            let came = timeout(PATIENCE, waiting).await;
            came.unwrap_or_else(|_| panic!("{story}: this frame never came: {kind}"))
        }
    }

    /// Everything up to the end, and how it ended.
    pub async fn rest(&mut self) -> (Vec<Value>, Closed) {
        let mut frames = Vec::new();
        let end = async {
            loop {
                match self.next().await {
                    Ok(frame) => frames.push(frame),
                    Err(closed) => return closed,
                }
            }
        };
        let closed = timeout(PATIENCE, end).await.expect("the socket ends");
        (frames, closed)
    }

    pub async fn says(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("it can be sent");
    }

    /// Asks whether anybody is there, and waits for the answer.
    pub async fn is_answered(&mut self) {
        self.socket.send(Message::Ping("there?".into())).await.expect("it can be sent");
        let answer = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Pong(bytes))) => return assert_eq!(&bytes[..], b"there?"),
                    Some(Ok(_)) => {}
                    ended => panic!("no answer to a ping: {ended:?}"),
                }
            }
        };
        timeout(PATIENCE, answer).await.expect("an answer to a ping");
    }
}
