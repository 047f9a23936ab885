//! The table of routes as an OpenAPI 3.0 document.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::call::Parameter;
use super::field::{Field, Kind, Record};
use super::input::BodyShape;
use super::route::{Access, AnswerShape, Route};

/// The document for these routes.
pub(in crate::rest) fn document(routes: &[Route]) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut schemas = Schemas::default();
    for route in routes {
        let operation = operation(route, &mut schemas);
        paths.entry(route.path).or_default().insert(route.method.as_str().to_lowercase(), operation);
    }
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Headwater",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A gateway for live TV and on-demand streams. A slash at the end of a path may be left \
                out. HEAD is answered wherever GET is. Fields and parameters that are not described are ignored.",
            "license": { "name": "MIT or Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas.done(),
            "responses": shared_refusals(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = json!({
        "operationId": route.operation_id(),
        "summary": route.summary,
        "tags": [route.path.trim_matches('/').split('/').find(|it| *it != "api").unwrap_or("api")],
        "responses": responses(route, schemas),
        "security": match route.access {
            Access::Anyone => json!([]),
            Access::From(_) => json!([{ "bearer": [] }, { "apiKey": [] }]),
        },
    });
    if let Access::From(level) = route.access {
        operation["description"] = json!(format!("For users of level {level} and above."));
    }
    let in_path = route.path_parameters().map(path_parameter);
    let in_query = route.inputs.query.iter().map(|it| query_parameter(it, schemas));
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(shape) = route.inputs.body {
        let is_partial = route.method == Method::PATCH;
        let (schema, is_required) = match shape {
            BodyShape::One(record) => {
                let has_required = record.fields.iter().any(|it| it.is_required);
                (schemas.request(record, is_partial), has_required && !is_partial)
            }
            BodyShape::Many(record, max) => {
                let items = schemas.request(record, is_partial);
                (json!({ "type": "array", "items": items, "maxItems": max }), true)
            }
        };
        operation["requestBody"] =
            json!({ "required": is_required, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn path_parameter(name: &str) -> Value {
    // As it is read: a number is no uuid.
    let schema = match Parameter::read(name, "1") {
        Some(_) => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        None => json!({ "type": "string", "format": "uuid" }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

fn query_parameter(field: &Field, schemas: &mut Schemas) -> Value {
    let mut parameter = json!({
        "name": field.name,
        "in": "query",
        "description": field.meaning.trim(),
        "schema": schemas.of_field(field, true),
    });
    if field.is_required {
        parameter["required"] = true.into();
    }
    if matches!(field.kind, Kind::List(_)) {
        parameter["style"] = "form".into();
        parameter["explode"] = false.into();
    }
    parameter
}

fn responses(route: &Route, schemas: &mut Schemas) -> Map<String, Value> {
    let mut responses = Map::new();
    let mut good = json!({ "description": "Done." });
    let schema = match route.answer {
        AnswerShape::Nothing => None,
        AnswerShape::One(kind) => Some(schemas.of_kind(kind)),
        AnswerShape::Page(kind) => Some(envelope(schemas.of_kind(kind))),
    };
    if let Some(schema) = schema {
        good["content"] = json!({ "application/json": { "schema": schema } });
    }
    responses.insert(route.status.as_str().to_owned(), good);
    for (status, when) in refusals(route) {
        let described = match SHARED.contains(&(status, when.join(" ").as_str())) {
            true => json!({ "$ref": format!("#/components/responses/{}", name_of(status)) }),
            false => refusal(status, &when.join(" ")),
        };
        responses.insert(status.as_str().to_owned(), described);
    }
    responses
}

fn refusal(status: StatusCode, when: &str) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let schema = match status {
        StatusCode::BAD_REQUEST => json!({ "anyOf": [reference("FieldErrors"), reference("Error")] }),
        _ => reference("Error"),
    };
    json!({ "description": when, "content": { "application/json": { "schema": schema } } })
}

/// Refusals that most routes have, described once.
const SHARED: [(StatusCode, &str); 7] = [
    (StatusCode::UNAUTHORIZED, "There are no credentials, or none that are good."),
    (StatusCode::FORBIDDEN, "The user may not do this."),
    (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time."),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large."),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not JSON by its type, or it is compressed."),
    (
        StatusCode::INTERNAL_SERVER_ERROR,
        "The gateway failed; the log says more under the number in the answer.",
    ),
    (StatusCode::SERVICE_UNAVAILABLE, "Not at the moment; another try may help."),
];

fn shared_refusals() -> Map<String, Value> {
    SHARED.into_iter().map(|(status, when)| (name_of(status), refusal(status, when))).collect()
}

fn name_of(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Refusal").replace(' ', "")
}

/// Every status beside the good one, and when it is given.
fn refusals(route: &Route) -> BTreeMap<StatusCode, Vec<&'static str>> {
    let mut refusals: BTreeMap<StatusCode, Vec<&'static str>> = BTreeMap::new();
    let mut add = |status, when| refusals.entry(status).or_default().push(when);
    for (status, when) in SHARED {
        let is_given = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => route.access != Access::Anyone,
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => true,
            _ => route.inputs.body.is_some(),
        };
        if is_given {
            add(status, when);
        }
    }
    if route.inputs.body.is_some() {
        add(StatusCode::BAD_REQUEST, "The body is no JSON, or has fields that cannot be taken.");
    }
    if !route.inputs.query.is_empty() {
        add(StatusCode::BAD_REQUEST, "A parameter cannot be taken.");
    }
    if route.path_parameters().next().is_some() {
        add(StatusCode::NOT_FOUND, "There is no such thing.");
    }
    if route.inputs.is_paged {
        add(StatusCode::NOT_FOUND, "The page is beyond the end.");
    }
    for (status, when) in &route.refusals {
        add(*status, when);
    }
    add(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The gateway failed; the log says more under the number in the answer.",
    );
    add(StatusCode::SERVICE_UNAVAILABLE, "Not at the moment; another try may help.");
    refusals
}

/// The envelope of a list.
fn envelope(results: Value) -> Value {
    json!({
        "type": "object",
        "required": ["count", "next", "previous", "results"],
        "properties": {
            "count": { "type": "integer", "description": "Entries of the whole list." },
            "next": { "type": "string", "format": "uri", "nullable": true },
            "previous": { "type": "string", "format": "uri", "nullable": true },
            "results": { "type": "array", "items": results },
        },
    })
}

/// The schemas that have names, as they come up.
#[derive(Default)]
struct Schemas {
    named: Map<String, Value>,
}

impl Schemas {
    fn done(mut self) -> Map<String, Value> {
        self.named.insert(
            "Error".to_owned(),
            json!({
                "type": "object",
                "required": ["detail"],
                "properties": {
                    "detail": { "type": "string", "example": "Not found." },
                    "code": { "type": "string", "description": "Why a token is not taken." },
                    "messages": { "type": "array", "items": { "type": "object" } },
                    "request_id": { "type": "string", "format": "uuid", "description": "Find it in the log." },
                },
            }),
        );
        self.named.insert(
            "FieldErrors".to_owned(),
            json!({
                "type": "object",
                "description": "For each field what is wrong with it.",
                "additionalProperties": { "type": "array", "items": { "type": "string" } },
                "example": { "name": ["This field is required."] },
            }),
        );
        self.named
    }

    /// What is shown of a record.
    fn answer(&mut self, record: &'static Record) -> Value {
        let fields = record.fields.iter().filter(|it| it.is_in_answers());
        let all = fields.clone().map(|it| it.name).collect();
        self.object(record.name.to_owned(), record, fields, all, false)
    }

    /// What is taken of a record.
    fn request(&mut self, record: &'static Record, is_partial: bool) -> Value {
        let fields = record.fields.iter().filter(|it| it.is_in_bodies());
        let required = fields.clone().filter(|it| it.is_required && !is_partial).map(|it| it.name);
        let prefix = if is_partial { "Patched" } else { "" };
        self.object(
            format!("{prefix}{}Request", record.name),
            record,
            fields.clone(),
            required.collect(),
            true,
        )
    }

    fn object<'a>(
        &mut self,
        name: String,
        record: &Record,
        fields: impl Iterator<Item = &'a Field>,
        required: Vec<&str>,
        is_sent: bool,
    ) -> Value {
        if !self.named.contains_key(&name) {
            // Taken first, so that a record that contains itself comes to an end.
            self.named.insert(name.clone(), Value::Null);
            let properties: Map<_, _> =
                fields.map(|it| (it.name.to_owned(), self.property(it, is_sent))).collect();
            let mut schema = json!({
                "type": "object",
                "description": record.meaning.trim(),
                "properties": properties,
            });
            if !required.is_empty() {
                schema["required"] = required.into();
            }
            self.named.insert(name.clone(), schema);
        }
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }

    fn property(&mut self, field: &Field, is_sent: bool) -> Value {
        let mut schema = self.of_field(field, is_sent);
        if schema.get("$ref").is_some() {
            // Beside a reference nothing else counts.
            schema = json!({ "allOf": [schema] });
        }
        schema["description"] = field.meaning.trim().into();
        schema
    }

    /// Limits are told of what is sent; what is shown may come from somewhere else, such as a playlist.
    fn of_field(&mut self, field: &Field, is_sent: bool) -> Value {
        let mut schema = self.of_kind(field.kind);
        match field.kind {
            Kind::Text | Kind::Url if is_sent => {
                schema["maxLength"] = field.chars_max.into();
                if !field.may_be_blank {
                    schema["minLength"] = 1.into();
                }
            }
            Kind::Integer | Kind::Number if is_sent => {
                if let Some(least) = field.least {
                    schema["minimum"] = least.into();
                }
                if let Some(most) = field.most {
                    schema["maximum"] = most.into();
                }
            }
            Kind::List(_) if is_sent => schema["maxItems"] = field.items_max.into(),
            _ => {}
        }
        if field.is_nullable && !matches!(field.kind, Kind::Any) {
            if schema.get("$ref").is_some() {
                schema = json!({ "allOf": [schema] });
            }
            // Beside a choice of types it would not count.
            let of_type = if schema.get("anyOf").is_some() { &mut schema["anyOf"][0] } else { &mut schema };
            of_type["nullable"] = true.into();
            if let Some(choices) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                choices.push(Value::Null);
            }
        }
        if let Some(example) = field.example {
            let is_text =
                matches!(field.kind, Kind::Text | Kind::Url | Kind::Uuid | Kind::Time | Kind::Choice(_));
            let parsed = if is_text { None } else { serde_json::from_str(example).ok() };
            schema["example"] = parsed.unwrap_or_else(|| example.into());
        }
        schema
    }

    fn of_kind(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Url => json!({ "type": "string", "format": "uri" }),
            Kind::Uuid => json!({ "type": "string", "format": "uuid" }),
            Kind::Time => json!({ "type": "string", "format": "date-time" }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Integer => json!({ "type": "integer" }),
            Kind::Number => json!({ "type": "number" }),
            Kind::Choice(names) => json!({ "type": "string", "enum": names }),
            Kind::NumberChoice(numbers) => json!({ "type": "integer", "enum": numbers }),
            Kind::Object => json!({ "type": "object", "additionalProperties": true }),
            Kind::Any => json!({}),
            Kind::List(items) => json!({ "type": "array", "items": self.of_kind(*items) }),
            Kind::Either(kinds) => {
                let kinds: Vec<Value> = kinds.iter().map(|it| self.of_kind(*it)).collect();
                json!({ "anyOf": kinds })
            }
            Kind::Record(record) => self.answer(record),
        }
    }
}
