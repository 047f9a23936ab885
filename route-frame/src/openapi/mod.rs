//! The table of routes as an OpenAPI 3.0 document.

use std::collections::BTreeMap;

use domain::texts;
use domain::user_group::Permission;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::access::Access;
use super::call::{ParameterKind, QUERY_PASSWORD, QUERY_USERNAME};
use super::field::{Field, Kind, Place, Record};
use super::input::{BodyShape, FileInput};
use super::list;
use super::route::{AnswerShape, Route};
use super::upload::FILE;
use super::value::FLAG_TEXTS;

/// Returns the document for these routes.
pub fn document(routes: &[Route]) -> Value {
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
            "description": "A gateway for live TV and on-demand streams. The trailing slash of a path may be left \
                out. HEAD is supported wherever GET is. Undocumented fields and parameters are ignored.",
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
                "basic": { "type": "http", "scheme": "basic" },
                "token": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "token",
                    "description": "An access token.",
                },
            },
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = json!({
        "operationId": route.operation_id(),
        "summary": route.summary,
        "tags": [tag(route.path)],
        "responses": responses(route, schemas),
        "security": security(route.access),
    });
    if let Some(mut description) = description(route.access) {
        if let Some(permission) = route.permission.and_then(Permission::from_id) {
            description +=
                &format!(" A user of a lower level needs the permission `{}`.", permission.codename());
        }
        operation["description"] = description.into();
    }
    let in_path = route.path_parameters().map(path_parameter);
    let login: &[Field] = match route.access {
        Access::QueryLogin if !route.takes_form() => &LOGIN_FIELDS,
        Access::PlayersOrNetworks(_) => &OPTIONAL_LOGIN_FIELDS,
        _ => &[],
    };
    let in_query = route.inputs.query.iter().filter(|_| !route.takes_form()).chain(login);
    let in_query = in_query.map(|it| match list::takes_any_ordering(route, it) {
        true => any_ordering(it, schemas),
        false => query_parameter(it, schemas),
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = request_body(route, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

/// The parameters of [`Access::QueryLogin`].
static LOGIN_FIELDS: [Field; 2] = [
    Field::new::<String>(QUERY_USERNAME, "Name of the user.", Place::Query).required(),
    Field::new::<String>(QUERY_PASSWORD, "A password of the user for players.", Place::Query).required(),
];

/// The parameters of [`Access::PlayersOrNetworks`]. They have no maximum length, because they are ignored beside a key.
static OPTIONAL_LOGIN_FIELDS: [Field; 2] = [
    Field::new::<String>(QUERY_USERNAME, "Name of the user.", Place::Query).chars_max(usize::MAX),
    Field::new::<String>(QUERY_PASSWORD, "A password of the user for players.", Place::Query)
        .chars_max(usize::MAX),
];

/// Describes the form that a route with a login accepts in place of a query.
fn form_body(route: &Route, schemas: &mut Schemas) -> Value {
    let mut properties = Map::new();
    for field in route.inputs.query.iter().chain(&LOGIN_FIELDS) {
        let mut schema = schemas.field_schema(field, true);
        schema["description"] = field.description.into();
        properties.insert(field.name.to_owned(), schema);
    }
    let schema =
        json!({ "type": "object", "properties": properties, "required": [QUERY_USERNAME, QUERY_PASSWORD] });
    json!({ "required": true, "content": { "application/x-www-form-urlencoded": { "schema": schema } } })
}

fn request_body(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    if route.takes_form() {
        return Some(form_body(route, schemas));
    }
    let is_partial = route.method == Method::PATCH;
    let fields = route.inputs.body.map(|shape| match shape {
        BodyShape::One(_) | BodyShape::Both(..) => {
            let has_required = shape.fields().any(|it| it.is_required);
            let schema = match shape {
                BodyShape::Both(record, other) => {
                    let parts = [record, other].map(|it| schemas.request(it, is_partial));
                    json!({ "allOf": parts })
                }
                BodyShape::One(record) | BodyShape::Many(record, _) => schemas.request(record, is_partial),
            };
            (schema, has_required && !is_partial)
        }
        BodyShape::Many(record, max) => {
            let items = schemas.request(record, is_partial);
            (json!({ "type": "array", "items": items, "maxItems": max }), true)
        }
    });
    let Some(needed) = route.inputs.file else {
        return fields.map(|(schema, is_required)| {
            json!({ "required": is_required, "content": { "application/json": { "schema": schema } } })
        });
    };
    let is_file_required = needed == FileInput::Required;
    let bytes = || json!({ "type": "string", "format": "binary", "maxLength": route.upload_bytes_max });
    let mut part = json!({ "type": "object", "properties": { FILE: bytes() } });
    if is_file_required {
        part["required"] = json!([FILE]);
    }
    let (fields, is_required) = fields.unzip();
    let form = match &fields {
        Some(fields) => json!({ "allOf": [fields, part] }),
        None => part,
    };
    let mut content = json!({ "multipart/form-data": { "schema": form } });
    match fields {
        Some(fields) if !is_file_required => content["application/json"] = json!({ "schema": fields }),
        Some(_) => {}
        None => content["application/octet-stream"] = json!({ "schema": bytes() }),
    }
    Some(json!({ "required": is_file_required || is_required == Some(true), "content": content }))
}

/// Returns the group of an operation: the first segment of its path below `/api/`.
fn tag(path: &str) -> &str {
    let is_name = |it: &&str| !matches!(*it, "" | "api") && !it.starts_with('{');
    // The other paths that start with a parameter are short forms of live ones.
    let other = if path.starts_with("/{") { "live" } else { "api" };
    path.split('/').find(is_name).unwrap_or(other)
}

/// Returns the alternatives of credentials. Credentials in a path or a form are parameters and not described here.
fn security(access: Access) -> Value {
    match access {
        Access::Anyone | Access::PathLogin | Access::QueryLogin => json!([]),
        Access::From(_) => json!([{ "bearer": [] }, { "apiKey": [] }]),
        Access::FromHeaderOrQuery(_) => json!([{ "bearer": [] }, { "apiKey": [] }, { "token": [] }]),
        Access::UsersOrNetworks(_) => json!([{}, { "bearer": [] }, { "apiKey": [] }]),
        Access::TitleOrNetworks(_) => json!([{}, { "bearer": [] }, { "apiKey": [] }, { "token": [] }]),
        Access::PlayersOrNetworks(_) => json!([{}, { "bearer": [] }, { "apiKey": [] }, { "basic": [] }]),
        Access::Depends { .. } => json!([{}, { "bearer": [] }, { "apiKey": [] }, { "token": [] }]),
    }
}

fn description(access: Access) -> Option<String> {
    match access {
        Access::Anyone => None,
        Access::From(level) | Access::FromHeaderOrQuery(level) => {
            Some(format!("Requires a user of level {level} or above."))
        }
        Access::UsersOrNetworks(level) => Some(format!(
            "Requires a user of level {level} or above, or a network that needs no credentials."
        )),
        Access::TitleOrNetworks(level) => Some(format!(
            "Requires a user of level {level} or above, a token that plays this title, or a network that needs no \
             credentials."
        )),
        Access::PlayersOrNetworks(level) => Some(format!(
            "Requires a user of level {level} or above, who may also log in with name and password in the query or by \
             `Authorization: Basic`, or a network that needs no credentials."
        )),
        Access::PathLogin => Some("Requires the name and a password of a user in the path.".to_owned()),
        Access::QueryLogin => Some(
            "Requires the name and a password of a user in the query or, with POST, in the form. The parameters of a POST \
             may also be in its query."
                .to_owned(),
        ),
        Access::Depends { description, .. } => Some(description.to_owned()),
    }
}

fn path_parameter(name: &str) -> Value {
    let schema = match ParameterKind::from_name(name) {
        ParameterKind::Id => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        ParameterKind::Uuid => json!({ "type": "string", "format": "uuid" }),
        ParameterKind::File => json!({ "type": "string", "pattern": r"^[0-9]+(\.ts)?$", "example": "7.ts" }),
        ParameterKind::StreamFile => {
            json!({ "type": "string", "pattern": r"^[0-9]+(\.(ts|m3u8|mp4))?$", "example": "7.m3u8" })
        }
        ParameterKind::Text => json!({ "type": "string", "minLength": 1 }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

/// Returns the order of a list that ignores unknown ones.
fn any_ordering(field: &Field, schemas: &mut Schemas) -> Value {
    let mut parameter = query_parameter(field, schemas);
    let description = field.description;
    let known: Vec<String> = match field.kind {
        Kind::Choice(known) => known.iter().map(|it| format!("`{it}`")).collect(),
        _ => Vec::new(),
    };
    parameter["schema"] = json!({ "type": "string" });
    parameter["description"] = format!(
        "{description} One of {}; another one is ignored with the header `Warning`, and refused with `strict=true`.",
        known.join(", ")
    )
    .into();
    parameter
}

fn query_parameter(field: &Field, schemas: &mut Schemas) -> Value {
    let mut parameter = json!({
        "name": field.name,
        "in": "query",
        "description": field.description,
        "schema": schemas.field_schema(field, true),
    });
    if field.is_required {
        parameter["required"] = true.into();
    } else {
        parameter["schema"] = or_empty(parameter["schema"].take());
    }
    if matches!(field.kind, Kind::List(_)) {
        parameter["style"] = "form".into();
        parameter["explode"] = false.into();
    }
    parameter
}

/// Returns the schema of a value that may also be an empty text, which counts as absent.
fn or_empty(mut schema: Value) -> Value {
    let empty = json!({ "type": "string", "maxLength": 0 });
    if let Some(alternatives) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        alternatives.push(empty);
        return schema;
    }
    if matches!(schema["type"].as_str(), Some("boolean" | "integer" | "number")) {
        return json!({ "anyOf": [schema, empty] });
    }
    if schema["type"] != "string" {
        return schema;
    }
    if let Some(choices) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        choices.push("".into());
    }
    if let Some(limits) = schema.as_object_mut() {
        limits.remove("minLength");
    }
    match schema.get("format").or(schema.get("pattern")) {
        Some(_) => json!({ "anyOf": [schema, empty] }),
        None => schema,
    }
}

/// Adds the texts that are read like a flag or a number, because clients send them in bodies as well as in queries.
fn or_text(schema: Value, kind: Kind) -> Value {
    let text = match kind {
        Kind::Flag => json!({ "type": "string", "enum": FLAG_TEXTS.map(|it| it.0) }),
        Kind::Integer | Kind::NumberChoice(_) => {
            json!({ "type": "string", "pattern": r"^\s*[+-]?[0-9]+\s*$" })
        }
        Kind::Number => {
            json!({ "type": "string", "pattern": r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$" })
        }
        _ => return schema,
    };
    json!({ "anyOf": [schema, text] })
}

fn responses(route: &Route, schemas: &mut Schemas) -> Map<String, Value> {
    let mut responses = Map::new();
    let json_of = |schema: Value| json!({ "application/json": { "schema": schema } });
    let success = match route.answer {
        AnswerShape::Nothing => json!({ "description": "Success, without a body." }),
        AnswerShape::One(kind) => {
            json!({ "description": "Success.", "content": json_of(schemas.kind_schema(kind, false)) })
        }
        AnswerShape::Page(kind) => {
            let mut envelope = envelope(schemas.kind_schema(kind, false));
            if let Some(flag) = list::flag(route.path) {
                envelope["properties"][flag] = json!({ "type": "boolean" });
            }
            let content = json_of(envelope);
            json!({ "description": list::description(route.path), "content": content })
        }
        AnswerShape::ArrayOrPage(kind) => {
            let item = schemas.kind_schema(kind, false);
            let schema = json!({ "anyOf": [{ "type": "array", "items": item }, envelope(item.clone())] });
            json!({ "description": "The list, or the requested page of it.", "content": json_of(schema) })
        }
        AnswerShape::Content(media_type) => content(&[media_type]),
        AnswerShape::StreamOrRedirect(media_types) => content(media_types),
        AnswerShape::OneOf(media_types) => {
            let schema = |media_type: &str| match media_type.split('/').next() {
                Some("application") => json!({}),
                Some("image") => json!({ "type": "string", "format": "binary" }),
                _ => json!({ "type": "string" }),
            };
            let content: Map<_, _> =
                media_types.iter().map(|it| ((*it).to_owned(), json!({ "schema": schema(it) }))).collect();
            json!({ "description": "Success.", "content": content })
        }
        AnswerShape::Redirect => redirect(),
    };
    let content = success["content"].clone();
    responses.insert(route.status.as_str().to_owned(), success);
    if let AnswerShape::StreamOrRedirect(_) = route.answer {
        responses.insert(StatusCode::FOUND.as_str().to_owned(), redirect());
    }
    for (status, reasons) in refusals(route) {
        let mut described = match SHARED.iter().find(|it| reasons == [it.2]) {
            Some((name, ..)) => json!({ "$ref": format!("#/components/responses/{name}") }),
            None => refusal(status, &reasons.join(" ")),
        };
        if route.plain_refusals.contains(&status) {
            // The body is JSON if another part of the gateway refuses.
            for (media_type, shape) in content.as_object().into_iter().flatten() {
                described["content"][media_type] = shape.clone();
            }
        }
        responses.insert(status.as_str().to_owned(), described);
    }
    responses
}

/// Describes a success with a text, or with bytes, of one of these media types.
fn content(media_types: &[&str]) -> Value {
    let schema = |media_type: &str| match media_type.starts_with("text/") {
        true => json!({ "type": "string" }),
        false => json!({ "type": "string", "format": "binary" }),
    };
    let content: Map<_, _> =
        media_types.iter().map(|it| ((*it).to_owned(), json!({ "schema": schema(it) }))).collect();
    json!({ "description": "Success.", "content": content })
}

fn redirect() -> Value {
    json!({
        "description": "The header `Location` contains the address.",
        "headers": { "Location": { "schema": { "type": "string" } } },
    })
}

fn refusal(status: StatusCode, reason: &str) -> Value {
    const WITHOUT_BODY: [StatusCode; 3] =
        [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE];
    if WITHOUT_BODY.contains(&status) {
        return json!({ "description": reason });
    }
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let schema = match status {
        StatusCode::BAD_REQUEST => json!({ "anyOf": [reference("FieldErrors"), reference("Error")] }),
        _ => reference("Error"),
    };
    json!({ "description": reason, "content": { "application/json": { "schema": schema } } })
}

/// A refusal that several routes share: its name in `components/responses`, its status and its reason.
type SharedRefusal = (&'static str, StatusCode, &'static str);

const INVALID_BODY: SharedRefusal =
    ("InvalidBody", StatusCode::BAD_REQUEST, "The body is not JSON, or a field is invalid.");
const INVALID_PARAMETER: SharedRefusal =
    ("InvalidParameter", StatusCode::BAD_REQUEST, "A query parameter is invalid.");
const UNAUTHORIZED: SharedRefusal =
    ("Unauthorized", StatusCode::UNAUTHORIZED, "Credentials are missing or invalid.");
const FORBIDDEN: SharedRefusal = ("Forbidden", StatusCode::FORBIDDEN, "The user lacks permission.");
const NETWORK_REFUSED: SharedRefusal =
    ("NetworkRefused", StatusCode::FORBIDDEN, "The caller's network is not allowed.");
const NOT_FOUND: SharedRefusal = ("NotFound", StatusCode::NOT_FOUND, "The object does not exist.");
const PAGE_NOT_FOUND: SharedRefusal =
    ("PageNotFound", StatusCode::NOT_FOUND, "The page is beyond the end of the list.");
const REQUEST_TIMEOUT: SharedRefusal =
    ("RequestTimeout", StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time.");
const PAYLOAD_TOO_LARGE: SharedRefusal =
    ("PayloadTooLarge", StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.");
const HEADER_TOO_LARGE: SharedRefusal = (
    "HeaderTooLarge",
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    "The address and the headers are too long. The answer has no body.",
);
const UNSUPPORTED_MEDIA_TYPE: SharedRefusal = (
    "UnsupportedMediaType",
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "The body is not declared as JSON or, for a player app, as a form, or is compressed.",
);
const INTERNAL_SERVER_ERROR: SharedRefusal = (
    "InternalServerError",
    StatusCode::INTERNAL_SERVER_ERROR,
    "Internal error. The log has details under `request_id`.",
);
const SERVICE_UNAVAILABLE: SharedRefusal =
    ("ServiceUnavailable", StatusCode::SERVICE_UNAVAILABLE, "Temporarily unavailable. Try again later.");

const SHARED: [SharedRefusal; 13] = [
    INVALID_BODY,
    INVALID_PARAMETER,
    UNAUTHORIZED,
    FORBIDDEN,
    NETWORK_REFUSED,
    NOT_FOUND,
    PAGE_NOT_FOUND,
    REQUEST_TIMEOUT,
    PAYLOAD_TOO_LARGE,
    HEADER_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    INTERNAL_SERVER_ERROR,
    SERVICE_UNAVAILABLE,
];

fn shared_refusals() -> Map<String, Value> {
    SHARED.into_iter().map(|(name, status, reason)| (name.to_owned(), refusal(status, reason))).collect()
}

/// Returns the status of every refusal with its reasons.
fn refusals(route: &Route) -> BTreeMap<StatusCode, Vec<&'static str>> {
    let has_body = route.inputs.has_body() || route.takes_form();
    let (needs_user, needs_level) = match route.access {
        Access::Anyone => (false, false),
        Access::From(_)
        | Access::FromHeaderOrQuery(_)
        | Access::UsersOrNetworks(_)
        | Access::TitleOrNetworks(_)
        | Access::PlayersOrNetworks(_) => (true, true),
        Access::PathLogin | Access::QueryLogin => (true, false),
        Access::Depends { .. } => (true, true),
    };
    let is_query_login = matches!(route.access, Access::QueryLogin);
    let shared = [
        (route.inputs.has_body(), INVALID_BODY),
        (!route.inputs.query.is_empty() || is_query_login, INVALID_PARAMETER),
        (needs_user, UNAUTHORIZED),
        (needs_level, FORBIDDEN),
        (route.network_class.is_some(), NETWORK_REFUSED),
        (route.path_parameters().next().is_some(), NOT_FOUND),
        (route.inputs.is_paged, PAGE_NOT_FOUND),
        (has_body, REQUEST_TIMEOUT),
        (has_body, PAYLOAD_TOO_LARGE),
        (true, HEADER_TOO_LARGE),
        (has_body, UNSUPPORTED_MEDIA_TYPE),
        (true, INTERNAL_SERVER_ERROR),
        (true, SERVICE_UNAVAILABLE),
    ];
    let shared = shared.into_iter().filter(|it| it.0).map(|(_, (_, status, reason))| (status, reason));
    let mut refusals: BTreeMap<StatusCode, Vec<&'static str>> = BTreeMap::new();
    for (status, reason) in shared.chain(route.refusals.iter().copied()) {
        refusals.entry(status).or_default().push(reason);
    }
    refusals
}

/// Returns the schema of a page.
fn envelope(results: Value) -> Value {
    json!({
        "type": "object",
        "required": ["count", "next", "previous", "results"],
        "properties": {
            "count": { "type": "integer", "description": "Length of the whole list." },
            "next": { "type": "string", "format": "uri", "nullable": true },
            "previous": { "type": "string", "format": "uri", "nullable": true },
            "results": { "type": "array", "items": results },
        },
    })
}

/// Returns the schema of the codes of texts. It is not an `enum`, because later versions have more codes.
fn text_code_name() -> Value {
    let known: Map<String, Value> = texts::rows().map(|it| (it.0.to_owned(), it.1.into())).collect();
    json!({
        "type": "string",
        "description": "Stable name of a text, for programs that show it in another language. Texts without a code have none. \
                        `x-texts` has each code with its English text; later versions have more.",
        "example": "not_found",
        "x-texts": known,
    })
}

/// Named schemas, collected while operations are described.
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
                    "success": { "type": "boolean", "description": "Always false; of some routes only." },
                    "error": { "type": "string", "description": "The same as `detail`; of some routes only." },
                    "code": json!({ "$ref": "#/components/schemas/TextCodeName" }),
                    "values": { "type": "object", "description": "The values in `detail`, by name." },
                    "messages": { "type": "array", "items": { "type": "object" } },
                    "id": { "type": "integer", "description": "The record that exists already." },
                    "conflicts": {
                        "type": "array",
                        "items": { "type": "object" },
                        "description": "What has changed since: record, id, name, fields and message.",
                    },
                    "request_id": { "type": "string", "format": "uuid", "description": "Identifies the error in the log." },
                },
            }),
        );
        self.named.insert(
            "FieldErrors".to_owned(),
            json!({
                "type": "object",
                "description": "Error messages by field. `codes` has the code and the values of each message, in the same \
                                order; `null` for one without a code.",
                "properties": {
                    "codes": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "nullable": true,
                                "required": ["code", "values"],
                                "properties": {
                                    "code": json!({ "$ref": "#/components/schemas/TextCodeName" }),
                                    "values": { "type": "object" },
                                },
                            },
                        },
                    },
                },
                "additionalProperties": { "type": "array", "items": { "type": "string" } },
                "example": { "name": ["This field is required."] },
            }),
        );
        self.named.insert("TextCodeName".to_owned(), text_code_name());
        self.named
    }

    /// Returns the schema of an object in answers.
    fn answer(&mut self, record: &'static Record) -> Value {
        let fields = record.fields.iter().filter(|it| it.is_in_answers());
        let all = fields.clone().filter(|it| !it.may_be_absent).map(|it| it.name).collect();
        self.object(record.name.to_owned(), record, fields, all, false)
    }

    /// Returns the schema of an object in bodies.
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
            // Reserves the name, so that a record that contains itself does not recurse for ever.
            self.named.insert(name.clone(), Value::Null);
            let properties: Map<_, _> =
                fields.map(|it| (it.name.to_owned(), self.property(it, is_sent))).collect();
            let mut schema = json!({
                "type": "object",
                "description": record.description,
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
        let mut schema = self.field_schema(field, is_sent);
        if schema.get("$ref").is_some() {
            // Members next to `$ref` are ignored.
            schema = json!({ "allOf": [schema] });
        }
        schema["description"] = field.description.into();
        schema
    }

    /// Declares limits for requests only: values in answers may come from other sources, such as a playlist.
    fn field_schema(&mut self, field: &Field, is_sent: bool) -> Value {
        let mut schema = self.kind_schema(field.kind, is_sent);
        match field.kind {
            Kind::Text | Kind::Url if is_sent && field.chars_max < usize::MAX => {
                schema["maxLength"] = field.chars_max.into();
                if !field.may_be_blank {
                    schema["minLength"] = 1.into();
                } else if matches!(field.kind, Kind::Url) {
                    schema = or_empty(schema);
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
                // `nullable` requires a `type` in the same schema.
                schema = json!({ "type": "object", "allOf": [schema] });
            }
            // `nullable` has no effect next to `anyOf`.
            let of_type = if schema.get("anyOf").is_some() { &mut schema["anyOf"][0] } else { &mut schema };
            of_type["nullable"] = true.into();
            if let Some(choices) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                choices.push(Value::Null);
            }
        }
        if is_sent {
            schema = or_text(schema, field.kind);
        }
        if let Some(example) = field.example {
            let is_text =
                matches!(field.kind, Kind::Text | Kind::Url | Kind::Uuid | Kind::Time | Kind::Choice(_));
            let parsed = if is_text { None } else { serde_json::from_str(example).ok() };
            schema["example"] = parsed.unwrap_or_else(|| example.into());
        }
        schema
    }

    fn kind_schema(&mut self, kind: Kind, is_sent: bool) -> Value {
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
            Kind::List(items) => {
                let item = self.kind_schema(*items, is_sent);
                json!({ "type": "array", "items": if is_sent { or_text(item, *items) } else { item } })
            }
            Kind::Nullable(kind) => {
                let mut schema = self.kind_schema(*kind, is_sent);
                schema["nullable"] = true.into();
                schema
            }
            Kind::Either(kinds) => {
                let kinds: Vec<Value> = kinds.iter().map(|it| self.kind_schema(*it, is_sent)).collect();
                json!({ "anyOf": kinds })
            }
            Kind::Record(record) if is_sent => self.request(record, false),
            Kind::Record(record) => self.answer(record),
        }
    }
}

#[cfg(test)]
mod tests;
