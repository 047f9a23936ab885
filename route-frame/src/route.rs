//! One operation of the interface. Routing, the schema and the generated tests are derived from this value.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use config::NetworkClass;
use data_encoding::HEXLOWER;
use domain::clients::ARRAY_LISTS;
use domain::ids::PermissionId;
use domain::user::UserLevel;
use futures_util::future::BoxFuture;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION,
    VARY,
};
use http::{HeaderMap, Method, Response, StatusCode};
use serde::Serialize;
use serde_json::Serializer;
use server::WarpBody;
use server::field_errors::FieldErrors;
use server::reply::{JSON, Refusal, declare_json, json_text};
use sha2::{Digest, Sha256};
use warp::reply::Response as Reply;

use super::access::Access;
use super::call::Call;
use super::field::{Field, Kind};
use super::input::{Input, Inputs, RequestInput};
use super::value::Shape;

/// One operation: method, path, access, input, answer and handler.
#[derive(Clone)]
pub struct Route {
    pub method: Method,
    /// Path with its parameters in braces, whose names determine their kinds (see `ParameterKind`). Paths below `/api/`
    /// end with a slash.
    pub path: &'static str,
    pub access: Access,
    /// The networks that may use the route. `None` is every network.
    pub network_class: Option<NetworkClass>,
    /// A sentence that begins with a verb, such as "Lists channels."
    pub summary: &'static str,
    pub inputs: Inputs,
    pub status: StatusCode,
    pub answer: AnswerShape,
    /// Refusals that are specific to this route, each with its reason.
    pub refusals: Vec<(StatusCode, &'static str)>,
    /// Statuses of refusals whose body can have the media type of a success instead of JSON.
    pub plain_refusals: Vec<StatusCode>,
    /// The pages of other origins that may read the answers.
    pub readers: PageReaders,
    /// Whether the last parameter of the path also takes segments that follow it, with their slashes.
    pub takes_rest: bool,
    /// Whether the route changes nothing although its method is not GET.
    pub only_reads: bool,
    /// The permission with which users of a lower level may use the route, if it is one of level 1.
    pub permission: Option<PermissionId>,
    /// Why plugins may not use the route, whatever their permissions are.
    pub refused_to_plugins: Option<&'static str>,
    /// Maximum size of the body of a user, in bytes; the configured maximum applies as well.
    pub body_bytes_max: usize,
    /// Maximum size of an uploaded file, in bytes.
    pub upload_bytes_max: u64,
    /// The collection of the stored record that the parameter `{id}` names: its revision is the entity tag of the answer, and
    /// a condition of a write.
    pub record: Option<&'static str>,
    /// Answers instead of a refusal, for GET.
    pub on_refusal: Option<OnRefusal>,
    /// Further paths that the route serves, besides those of all other routes.
    pub also_at: Option<fn(&str) -> bool>,
    pub handler: BoxedHandler,
}

/// The pages of other origins that may read the answers of a route. Pages of the origins in `http.allowed_origins` may
/// read all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageReaders {
    /// Those of the configured origins.
    Allowed,
    /// Every page whose request has a login that was accepted.
    WithLogin,
    /// Every page, refusals included.
    Every,
}

impl PageReaders {
    /// Returns whether pages of any origin may read the answer to a request with or without a login.
    pub(super) fn are_all(self, has_login: bool) -> bool {
        match self {
            Self::Allowed => false,
            Self::WithLogin => has_login,
            Self::Every => true,
        }
    }
}

/// Content of a successful answer.
#[derive(Clone, Copy, Debug)]
pub enum AnswerShape {
    Nothing,
    /// JSON.
    One(Kind),
    /// JSON: the envelope of lists.
    Page(Kind),
    /// JSON: an array, or the envelope if a page was requested.
    ArrayOrPage(Kind),
    /// Text, bytes or a stream of this media type.
    Content(&'static str),
    /// A content of one of these media types.
    OneOf(&'static [&'static str]),
    /// The header `Location`.
    Redirect,
    /// A stream of one of these media types, or 302 with the header `Location`.
    StreamOrRedirect(&'static [&'static str]),
}

impl AnswerShape {
    /// Returns the shape at a path, as it is published. The specification promises an envelope where only few programs get an
    /// array.
    fn at(self, path: &str) -> Self {
        let is_array = || ARRAY_LISTS.iter().any(|it| it.path == path && !it.without_agent);
        match self {
            Self::Page(kind) if is_array() => Self::ArrayOrPage(kind),
            other => other,
        }
    }

    /// Returns the fields of the record, or of the records of the list, that the answer is.
    pub(super) fn fields(self) -> &'static [Field] {
        let kind = match self {
            Self::One(Kind::List(kind)) => *kind,
            Self::One(kind) | Self::Page(kind) | Self::ArrayOrPage(kind) => kind,
            _ => return &[],
        };
        match kind {
            Kind::Record(record) => record.fields,
            _ => &[],
        }
    }
}

/// Maximum size of the body of a user, in bytes, where the route sets no other.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The same for objects with properties of any content, which may have 100,000 bytes each.
const PROPERTIES_BODY_BYTES_MAX: usize = 256 << 10;

/// A handler without its types: reads the input and starts, or returns the errors of the input.
pub type BoxedHandler = Arc<dyn Fn(Call, &RequestInput) -> Result<HandlerFuture, FieldErrors> + Send + Sync>;
/// Answers a request that was refused, or returns the refusal.
pub type OnRefusal = fn(Call, Refusal) -> HandlerFuture;
pub type HandlerFuture = BoxFuture<'static, Result<Reply, Refusal>>;

impl Route {
    pub fn get<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::GET, path, access, summary, Operation::new(handler))
    }

    pub fn post<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::POST, path, access, summary, Operation::new(handler))
    }

    pub fn put<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::PUT, path, access, summary, Operation::new(handler))
    }

    /// Like PUT, except that every field may be left out.
    pub fn patch<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::PATCH, path, access, summary, Operation::new(handler))
    }

    pub fn delete<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::DELETE, path, access, summary, Operation::new(handler))
    }

    /// Returns one route for each method, such as GET and POST, with the same path and handler.
    pub fn each<Args>(
        methods: impl IntoIterator<Item = Method>,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Vec<Self> {
        let route = Self::new(Method::GET, path, access, summary, Operation::new(handler));
        methods.into_iter().map(|method| Route { method, ..route.clone() }).collect()
    }

    fn new(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        operation: Operation,
    ) -> Self {
        let Operation { inputs, status, answer, handler } = operation;
        Route {
            method,
            path,
            access,
            network_class: NetworkClass::from_path(path),
            summary,
            inputs,
            status,
            answer: answer.at(path),
            refusals: Vec::new(),
            plain_refusals: Vec::new(),
            readers: PageReaders::Allowed,
            takes_rest: false,
            only_reads: false,
            permission: None,
            refused_to_plugins: None,
            body_bytes_max: BODY_BYTES_MAX,
            upload_bytes_max: 0,
            record: None,
            on_refusal: None,
            also_at: None,
            handler,
        }
    }

    /// Adds a refusal of the handler. Those for access, path, query and body, and 500 and 503, are added automatically.
    pub fn refuses(mut self, status: StatusCode, when: &'static str) -> Self {
        self.refusals.push((status, when));
        self
    }

    /// Adds a refusal whose body has the media type of a success.
    pub fn refuses_plainly(mut self, status: StatusCode, when: &'static str) -> Self {
        self.plain_refusals.push(status);
        self.refuses(status, when)
    }

    /// Lets pages of any origin read the answers: adds the CORS header to them, and answers preflight requests. Only for
    /// routes where browsers do not add credentials on their own.
    pub fn for_any_origin(self) -> Self {
        Route { readers: PageReaders::Every, ..self }
    }

    /// Lets pages of any origin read the answers to requests with a login of their own. What is answered because of the
    /// network alone could otherwise be read by every page that somebody on this network opens.
    pub fn for_any_origin_with_login(self) -> Self {
        Route { readers: PageReaders::WithLogin, ..self }
    }

    /// Declares the collection of the stored record that the parameter `{id}` names.
    pub fn about_record(self, collection: &'static str) -> Self {
        let route = Route { record: Some(collection), ..self };
        let other = "The record is not the one of `If-Match`.";
        let shown = "The record is not the one of `If-Match`. The answer is the record as it is now.";
        match route.method {
            Method::DELETE => route.refuses(StatusCode::PRECONDITION_FAILED, other),
            _ if route.is_write() => route.refuses_plainly(StatusCode::PRECONDITION_FAILED, shown),
            _ => route,
        }
    }

    /// Declares that the route changes nothing although its method is not GET.
    pub fn that_reads(self) -> Self {
        Route { only_reads: true, ..self }
    }

    /// Lets users of a lower level use a route of level 1 if they were granted this permission. Other routes stay as they are.
    pub fn also_with(self, permission: PermissionId) -> Self {
        let is_of_level_1 = matches!(self.access, Access::From(UserLevel::Standard));
        Route { permission: Some(permission).filter(|_| is_of_level_1), ..self }
    }

    /// Refuses plugins with this sentence, whatever their permissions are.
    pub fn not_for_plugins(self, reason: &'static str) -> Self {
        Route { refused_to_plugins: Some(reason), ..self }
    }

    /// Returns whether the parameters of the query may also be sent as a form in the body.
    pub(super) fn takes_form(&self) -> bool {
        matches!(self.access, Access::QueryLogin) && self.method == Method::POST
    }

    /// Lets this function answer every GET that is refused, also if the caller has no access. The answers are those of a
    /// success.
    pub fn on_refusal(self, answer: OnRefusal) -> Self {
        Route { on_refusal: Some(answer), ..self }
    }

    /// Serves also every path that no other route has and for which this function returns true. For pages, which are not
    /// part of the published interface.
    pub fn also_at(self, has_path: fn(&str) -> bool) -> Self {
        Route { also_at: Some(has_path), ..self }
    }

    pub(super) fn is_write(&self) -> bool {
        !self.method.is_safe() && !self.only_reads
    }

    /// Accepts bodies up to the configured maximum: for lists of many records.
    pub fn with_bulk_body(self) -> Self {
        Route { body_bytes_max: usize::MAX, ..self }
    }

    /// Accepts files up to this size in bytes. For handlers that take an `Upload`.
    pub fn with_upload(self, bytes_max: u64) -> Self {
        Route { upload_bytes_max: bytes_max, ..self }
    }

    /// Gives the last parameter of the path all segments that follow, if no other route has the path.
    pub fn with_rest(self) -> Self {
        Route { takes_rest: true, ..self }
    }

    /// Accepts bodies with properties of any content.
    pub fn with_properties_body(self) -> Self {
        Route { body_bytes_max: PROPERTIES_BODY_BYTES_MAX, ..self }
    }

    /// Returns the names of the parameters in the path.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Returns the name of the operation in clients generated from the schema. Unique, because method and path are.
    pub fn operation_id(&self) -> String {
        let is_list = matches!(
            self.answer,
            AnswerShape::Page(_) | AnswerShape::ArrayOrPage(_) | AnswerShape::One(Kind::List(_))
        )
            // A list can also be a field of the answer.
            || self.summary.starts_with("Lists ");
        let verb = match self.method {
            Method::GET if is_list => "list",
            Method::GET => "retrieve",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "partial_update",
            _ => "destroy",
        };
        let mut words: Vec<String> = Vec::new();
        // Files such as playlists also exist outside, so theirs keep the first segment.
        let is_api = self.path.starts_with("/api/") && self.path.ends_with('/');
        let mut segments = self.path.trim_matches('/').split('/').skip(usize::from(is_api)).peekable();
        while let Some(segment) = segments.next().filter(|it| !it.is_empty()) {
            match segment.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
                // The verb implies the record at the end of a path; other parameters are named. Outside `/api/` one
                // path can answer with a list and, with a parameter, with one record.
                // A key stands for several records, which the path without it selects too, and a version for one that is at
                // the path without it too.
                Some(parameter)
                    if is_api
                        && !["key", "version"].contains(&parameter)
                        && segments.peek().is_none()
                        && self.method != Method::POST =>
                {
                    if verb == "list" {
                        words.push("by".to_owned());
                    }
                }
                Some(parameter) => words.push(format!("by_{parameter}")),
                None => words.push(segment.replace(['-', '.'], "_")),
            }
        }
        if words.is_empty() {
            words.push(if is_api { "root" } else { "index" }.to_owned());
        }
        words.push(verb.to_owned());
        words.join("_")
    }
}

/// A handler without its types, and what the table of routes contains about them.
struct Operation {
    inputs: Inputs,
    status: StatusCode,
    answer: AnswerShape,
    handler: BoxedHandler,
}

impl Operation {
    fn new<Args, H: Handler<Args>>(handler: H) -> Self {
        Operation {
            inputs: H::Input::inputs(),
            status: H::Answer::STATUS,
            answer: H::Answer::SHAPE,
            handler: Arc::new(move |call: Call, input: &RequestInput| {
                Ok(reply_with(handler.start(call, H::Input::read(input)?)))
            }),
        }
    }
}

/// Turns the answer of a handler into a reply. Compiled once for each type of answer.
fn reply_with<A: Answer>(answer: BoxFuture<'static, Result<A, Refusal>>) -> HandlerFuture {
    Box::pin(async move { Ok(answer.await?.into_reply()) })
}

/// An async function that takes a [`Call`], or a call and an [`Input`], and answers.
pub trait Handler<Args>: Send + Sync + 'static {
    type Input: Input;
    type Answer: Answer;

    fn start(&self, call: Call, input: Self::Input) -> BoxFuture<'static, Result<Self::Answer, Refusal>>;
}

impl<F, Running, A> Handler<(Call,)> for F
where
    F: Fn(Call) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<A, Refusal>> + Send + 'static,
    A: Answer,
{
    type Input = ();
    type Answer = A;

    fn start(&self, call: Call, (): ()) -> BoxFuture<'static, Result<A, Refusal>> {
        Box::pin(self(call))
    }
}

impl<F, Running, I, A> Handler<(Call, I)> for F
where
    F: Fn(Call, I) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<A, Refusal>> + Send + 'static,
    I: Input,
    A: Answer,
{
    type Input = I;
    type Answer = A;

    fn start(&self, call: Call, input: I) -> BoxFuture<'static, Result<A, Refusal>> {
        Box::pin(self(call, input))
    }
}

/// A successful answer of a handler. Every type with a schema is an answer with status 200.
pub trait Answer: 'static {
    const STATUS: StatusCode;
    const SHAPE: AnswerShape;

    fn into_reply(self) -> Reply;
}

impl<T: Shape + Serialize + 'static> Answer for T {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::One(T::KIND);

    fn into_reply(self) -> Reply {
        json_reply(StatusCode::OK, &self)
    }
}

/// 201 with the created object.
#[derive(Debug)]
pub struct Created<T>(pub T);

impl<T: Shape + Serialize + 'static> Answer for Created<T> {
    const STATUS: StatusCode = StatusCode::CREATED;
    const SHAPE: AnswerShape = AnswerShape::One(T::KIND);

    fn into_reply(self) -> Reply {
        json_reply(Self::STATUS, &self.0)
    }
}

/// 202 with a task that has started.
#[derive(Debug)]
pub struct Accepted<T>(pub T);

impl<T: Shape + Serialize + 'static> Answer for Accepted<T> {
    const STATUS: StatusCode = StatusCode::ACCEPTED;
    const SHAPE: AnswerShape = AnswerShape::One(T::KIND);

    fn into_reply(self) -> Reply {
        json_reply(Self::STATUS, &self.0)
    }
}

/// 204.
#[derive(Debug)]
pub struct NoContent;

impl Answer for NoContent {
    const STATUS: StatusCode = StatusCode::NO_CONTENT;
    const SHAPE: AnswerShape = AnswerShape::Nothing;

    fn into_reply(self) -> Reply {
        let mut reply = Reply::default();
        *reply.status_mut() = Self::STATUS;
        reply
    }
}

/// Media type of an answer that is not JSON.
pub trait MediaType: 'static {
    const NAME: &'static str;
}

/// `text/plain` in UTF-8.
#[derive(Debug)]
pub struct PlainText;

impl MediaType for PlainText {
    const NAME: &'static str = "text/plain; charset=utf-8";
}

/// `text/html` in UTF-8.
#[derive(Debug)]
pub struct PageText;

impl MediaType for PageText {
    const NAME: &'static str = "text/html; charset=utf-8";
}

/// 200 with text, bytes or a stream of one media type.
#[derive(Debug)]
pub struct Content<M> {
    reply: Reply,
    media_type: PhantomData<M>,
}

impl<M: MediaType> Content<M> {
    pub fn new(body: impl Into<WarpBody>) -> Self {
        Self::from_reply(Response::new(body.into()))
    }

    /// Sets the media type of a reply.
    pub fn from_reply(mut reply: Reply) -> Self {
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(M::NAME));
        Content { reply, media_type: PhantomData }
    }

    pub fn with_status(mut self, status: StatusCode) -> Self {
        *self.reply.status_mut() = status;
        self
    }

    pub fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.reply.headers_mut().insert(name, HeaderValue::from_static(value));
        self
    }
}

impl<M: MediaType> Answer for Content<M> {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::Content(M::NAME);

    fn into_reply(self) -> Reply {
        self.reply
    }
}

/// 200 with a stream of one media type, or 302 to a URL that serves it. Caches keep neither, because both depend on what
/// is possible at the moment.
///
/// A handler must answer HEAD with an empty stream, without opening anything: players probe before they play.
pub enum StreamOrRedirect<M> {
    Stream(Content<M>),
    Redirect(HeaderValue),
}

impl<M: MediaType> Answer for StreamOrRedirect<M> {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::StreamOrRedirect(&[M::NAME]);

    fn into_reply(self) -> Reply {
        let mut reply = match self {
            Self::Stream(content) => content.into_reply(),
            Self::Redirect(location) => {
                let mut reply = Reply::default();
                *reply.status_mut() = StatusCode::FOUND;
                reply.headers_mut().insert(LOCATION, location);
                reply
            }
        };
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        reply
    }
}

/// The media types of a document.
pub trait MediaTypes: 'static {
    const NAMES: &'static [&'static str];
}

/// A text that is the same for every caller and rarely changes: 200 with an entity tag, or 304 if the client has it.
#[derive(Debug)]
pub struct Document<M> {
    text: Option<Bytes>,
    tag: HeaderValue,
    media_type: &'static str,
    /// How the text is encoded, if clients choose that; an empty name is not at all.
    coding: Option<&'static str>,
    media_types: PhantomData<M>,
}

impl<M: MediaTypes> Document<M> {
    /// `tag` is the entity tag of the text, in quotes; `media_type` is one of `M`.
    pub fn new(text: Bytes, tag: HeaderValue, media_type: &'static str, headers: &HeaderMap) -> Self {
        let text = (!client_has(headers, &tag)).then_some(text);
        Document { text, tag, media_type, coding: None, media_types: PhantomData }
    }

    /// Declares that the text is compressed with gzip, or that it is not because the client accepts no gzip. Each form has
    /// an entity tag of its own.
    pub fn with_gzip(self, is_gzip: bool) -> Self {
        Document { coding: Some(if is_gzip { "gzip" } else { "" }), ..self }
    }
}

/// Returns whether a client has the content with this entity tag, as `If-None-Match` says: the comparison ignores whether
/// tags are weak (RFC 9110, section 13.1.2).
pub fn client_has(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let Ok(wanted) = tag.to_str().map(opaque) else { return false };
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    known.flat_map(|it| it.split(',')).map(opaque).any(|it| it == "*" || it == wanted)
}

/// Returns an entity tag without the mark that it is weak.
fn opaque(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Returns the entity tag of a content, in quotes.
pub fn entity_tag(content: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(content);
    let tag = HEXLOWER.encode(&digest[..16]);
    HeaderValue::from_str(&format!("\"{tag}\"")).expect("quotes and hexadecimal digits are valid")
}

/// Returns the entity tag of everything that a content depends on, where the content itself is not at hand.
pub fn weak_tag(about: &[u8]) -> HeaderValue {
    let strong = entity_tag(about);
    let tag = [b"W/", strong.as_bytes()].concat();
    HeaderValue::from_bytes(&tag).unwrap_or(strong)
}

impl<M: MediaTypes> Answer for Document<M> {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(M::NAMES);

    fn into_reply(self) -> Reply {
        let has_text = self.text.is_some();
        let mut reply = match self.text {
            Some(text) => {
                let mut reply = Response::new(WarpBody::from(text));
                match self.media_type {
                    JSON => declare_json(reply.headers_mut()),
                    other => drop(reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(other))),
                }
                reply
            }
            None => {
                let mut reply = Reply::default();
                *reply.status_mut() = StatusCode::NOT_MODIFIED;
                reply
            }
        };
        reply.headers_mut().insert(ETAG, self.tag);
        if M::NAMES.len() > 1 {
            reply.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
        }
        if let Some(coding) = self.coding {
            reply.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
            if !coding.is_empty() && has_text {
                reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
        }
        // Clients ask each time; the answer is then short.
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        reply
    }
}

/// 301 to a path on the same host, or to a URL.
#[derive(Debug)]
pub struct Redirect(pub String);

impl Answer for Redirect {
    const STATUS: StatusCode = StatusCode::MOVED_PERMANENTLY;
    const SHAPE: AnswerShape = AnswerShape::Redirect;

    fn into_reply(self) -> Reply {
        let mut reply = Reply::default();
        *reply.status_mut() = Self::STATUS;
        if let Ok(location) = HeaderValue::from_str(&self.0) {
            reply.headers_mut().insert(LOCATION, location);
        }
        reply
    }
}

/// A value that is written as JSON, without its type.
pub trait ToJson {
    fn write_json(&self, text: &mut Vec<u8>) -> serde_json::Result<()>;
}

impl<T: Serialize> ToJson for T {
    fn write_json(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        self.serialize(&mut Serializer::new(text))
    }
}

/// Returns a JSON reply, in UTF-8 with no more escapes than JSON requires.
pub fn json_reply(status: StatusCode, value: &dyn ToJson) -> Reply {
    let mut text = Vec::new();
    match value.write_json(&mut text) {
        Ok(()) => json_text(status, text),
        Err(error) => Refusal::fault(format_args!("write an answer as JSON: {error}")).into_response(),
    }
}
