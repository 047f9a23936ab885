//! Integrations: targets that receive events, and the deliveries to these and to plugins.

mod delivery;
mod digest;
mod log;
mod passed;
mod preset;
mod queue;
mod record;
mod webhook;

pub use self::delivery::{ActionRun, AfterAttempt, Delivery, Outcome, REASON_BYTES_MAX, Recipient};
pub use self::digest::{DIGEST, DIGEST_MINUTES, Digest};
pub use self::log::{
    ANSWER_BYTES_KEPT, DeliveryLogEntry, DeliveryLogLimits, OUTPUT_BYTES_KEPT, REQUEST_BYTES_KEPT,
    ScriptOutput, WebhookAnswer,
};
pub use self::passed::{OutboxEvent, PassedEvents};
pub use self::preset::{MAX_AGE_S, Preset};
pub use self::queue::{DEAD_MAX, DEAD_MS_MAX, DeliveryQueue, NextDelivery, PARALLEL_MAX, WAITING_MAX};
pub use self::record::{
    FAILING_MS_MAX, INTEGRATIONS_MAX, Integration, IntegrationState, MAX_AGE_SECONDS, OLD_SECRET_MS,
    PluginAction, SCRIPT_SECONDS, SCRIPT_SECONDS_DEFAULT, Script, Signing, Subscription, Target, Webhook,
    WrongIntegrationField,
};
pub use self::webhook::{HEADER_BYTES_MAX, HEADERS_MAX, HeaderError, METHODS, check_headers, webhook_id};
