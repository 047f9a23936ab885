//! One operation of the interface: everything else about it is made from this value.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::user::UserLevel;
use http::{Method, StatusCode};
use serde::Serialize;
use warp::reply::Response as Reply;

use super::call::Call;
use super::field::Kind;
use super::input::{Given, Input, Inputs};
use super::value::Shape;
use crate::http::reply::Refusal;

/// Who may call.
///
/// There is no default: a route without one cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody, also without credentials. Those that are shown and wrong are as good as none.
    Anyone,
    /// Users of at least this level.
    From(UserLevel),
}

/// Any user at all.
pub(crate) const STREAMER: Access = Access::From(UserLevel::Streamer);
pub(crate) const STANDARD: Access = Access::From(UserLevel::Standard);
pub(crate) const ADMIN: Access = Access::From(UserLevel::Admin);

/// One operation: what it is called by, who may, what it takes, what it answers and who does it.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// With its parameters in braces; `{uuid}` is the uuid of a channel, each other one the number of a record. Begins
    /// with `/api/` and ends with a slash, or lies where the engine is looked at and controlled.
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    /// A sentence for people.
    pub(crate) summary: &'static str,
    pub(crate) inputs: Inputs,
    pub(crate) status: StatusCode,
    pub(crate) answer: AnswerShape,
    /// Refusals that are not those of every such route, and when they are given.
    pub(crate) refusals: Vec<(StatusCode, &'static str)>,
    pub(crate) run: Run,
}

/// What a good answer consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerShape {
    Nothing,
    One(Kind),
    /// The envelope of lists.
    Page(Kind),
}

/// A handler with its types put away: reads the input, runs, and makes the reply.
pub(crate) type Run = Arc<dyn Fn(Call, &Given) -> Running + Send + Sync>;
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;

impl Route {
    pub(crate) fn get<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::GET, path, access, summary, handler)
    }

    pub(crate) fn post<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::POST, path, access, summary, handler)
    }

    pub(crate) fn put<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::PUT, path, access, summary, handler)
    }

    /// As with PUT, but nothing has to be there.
    pub(crate) fn patch<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::PATCH, path, access, summary, handler)
    }

    pub(crate) fn delete<Args>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<Args>,
    ) -> Self {
        Self::new(Method::DELETE, path, access, summary, handler)
    }

    fn new<Args, H: Handler<Args>>(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: H,
    ) -> Self {
        let handler = Arc::new(handler);
        let run: Run = Arc::new(move |call, given| match H::Input::read(given) {
            Ok(input) => {
                let handler = Arc::clone(&handler);
                Box::pin(async move { Ok(handler.handle(call, input).await?.into_reply()) })
            }
            Err(errors) => Box::pin(async { Err(Refusal::fields(errors)) }),
        });
        Route {
            method,
            path,
            access,
            summary,
            inputs: H::Input::inputs(),
            status: H::Answer::STATUS,
            answer: H::Answer::SHAPE,
            refusals: Vec::new(),
            run,
        }
    }

    /// Says of a refusal of this handler when it is given. Those that come of its access, path, query and body, and
    /// 500 and 503, are there without.
    pub(crate) fn refuses(mut self, status: StatusCode, when: &'static str) -> Self {
        self.refusals.push((status, when));
        self
    }

    /// Names of the parameters in the path.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'))
    }

    /// What the operation is called in programs that are made from the schema. Unique, because method and path are.
    pub(crate) fn operation_id(&self) -> String {
        let verb = match self.method {
            Method::GET if matches!(self.answer, AnswerShape::Page(_) | AnswerShape::One(Kind::List(_))) => {
                "list"
            }
            Method::GET => "retrieve",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "partial_update",
            _ => "destroy",
        };
        let mut words: Vec<String> = Vec::new();
        let is_api = self.path.starts_with("/api/");
        let mut segments = self.path.trim_matches('/').split('/').skip(usize::from(is_api)).peekable();
        while let Some(segment) = segments.next() {
            match segment.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
                // The record itself is said by the verb; one on the way to something else has to be named.
                // Elsewhere one answer shows several records and another one of them, under one address.
                Some(_) if is_api && segments.peek().is_none() && self.method != Method::POST => {
                    if verb == "list" {
                        words.push("by".to_owned());
                    }
                }
                Some(parameter) => words.push(format!("by_{parameter}")),
                None => words.push(segment.replace(['-', '.'], "_")),
            }
        }
        if words.is_empty() {
            words.push("root".to_owned());
        }
        words.push(verb.to_owned());
        words.join("_")
    }
}

/// An async function that answers: of a [`Call`], or of a call and an [`Input`].
pub(crate) trait Handler<Args>: Send + Sync + 'static {
    type Input: Input;
    type Answer: Answer;

    fn handle(
        &self,
        call: Call,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Answer, Refusal>> + Send + 'static;
}

impl<F, Running, A> Handler<(Call,)> for F
where
    F: Fn(Call) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<A, Refusal>> + Send + 'static,
    A: Answer,
{
    type Input = ();
    type Answer = A;

    fn handle(&self, call: Call, (): ()) -> impl Future<Output = Result<A, Refusal>> + Send + 'static {
        self(call)
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

    fn handle(&self, call: Call, input: I) -> impl Future<Output = Result<A, Refusal>> + Send + 'static {
        self(call, input)
    }
}

/// What a handler answers with when all is well. Something that is shown is itself an answer: 200.
pub(crate) trait Answer: 'static {
    const STATUS: StatusCode;
    const SHAPE: AnswerShape;

    fn into_reply(self) -> Reply;
}

impl<T: Shape + Serialize + 'static> Answer for T {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::One(T::KIND);

    fn into_reply(self) -> Reply {
        shown(StatusCode::OK, &self)
    }
}

/// 201 with what was made.
#[derive(Debug)]
pub(crate) struct Created<T>(pub(crate) T);

impl<T: Shape + Serialize + 'static> Answer for Created<T> {
    const STATUS: StatusCode = StatusCode::CREATED;
    const SHAPE: AnswerShape = AnswerShape::One(T::KIND);

    fn into_reply(self) -> Reply {
        shown(Self::STATUS, &self.0)
    }
}

/// 202 with what has begun and is not done.
#[derive(Debug)]
pub(crate) struct Accepted<T>(pub(crate) T);

impl<T: Shape + Serialize + 'static> Answer for Accepted<T> {
    const STATUS: StatusCode = StatusCode::ACCEPTED;
    const SHAPE: AnswerShape = AnswerShape::One(T::KIND);

    fn into_reply(self) -> Reply {
        shown(Self::STATUS, &self.0)
    }
}

/// 204: it is done and there is nothing to say.
#[derive(Debug)]
pub(crate) struct Done;

impl Answer for Done {
    const STATUS: StatusCode = StatusCode::NO_CONTENT;
    const SHAPE: AnswerShape = AnswerShape::Nothing;

    fn into_reply(self) -> Reply {
        let mut reply = Reply::default();
        *reply.status_mut() = Self::STATUS;
        reply
    }
}

/// Something as JSON, in UTF-8 without escapes that JSON does not need.
pub(crate) fn shown(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_string(value) {
        Ok(text) => crate::http::reply::with_type(status, "application/json", text),
        Err(error) => Refusal::fault(format_args!("write an answer as JSON: {error}")).into_response(),
    }
}
