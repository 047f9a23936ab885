//! `/api/core/settings/env/`: facts about the installation that interfaces show.

use resource_derive::View;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

/// Facts about the installation. The gateway asks no service on the internet for its address, so place and public address
/// are always `null`.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct EnvironmentView {
    /// Always true, because the request has credentials.
    authenticated: bool,
    /// Always `null`.
    public_ip: Option<String>,
    /// Always `null`.
    local_ip: Option<String>,
    /// Always `null`.
    country_code: Option<String>,
    /// Always `null`.
    country_name: Option<String>,
    /// Always `null`.
    city: Option<String>,
    /// Always false.
    ip_lookup_enabled: bool,
    /// Always true.
    ip_lookup_env_disabled: bool,
    /// Always false.
    ip_lookup_pending: bool,
    /// Always `aio`: one program, without services of its own.
    #[field(example = "aio")]
    env_mode: &'static str,
    /// There is no Redis.
    redis_tls: NoRedis,
    /// There is no PostgreSQL.
    postgres_tls: NoPostgres,
}

/// Encryption of connections to Redis, which the gateway does not use.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NoRedis {
    /// Always false.
    enabled: bool,
    /// Always false.
    verify: bool,
    /// Always false.
    mtls: bool,
}

/// Encryption of connections to PostgreSQL, which the gateway does not use.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NoPostgres {
    /// Always false.
    enabled: bool,
    /// Always `null`.
    ssl_mode: Option<String>,
    /// Always false.
    mtls: bool,
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/settings/env/", STREAMER, "Returns facts about the installation.", retrieve)]
}

async fn retrieve(_: Call) -> Result<EnvironmentView, Refusal> {
    Ok(EnvironmentView {
        authenticated: true,
        public_ip: None,
        local_ip: None,
        country_code: None,
        country_name: None,
        city: None,
        ip_lookup_enabled: false,
        ip_lookup_env_disabled: true,
        ip_lookup_pending: false,
        env_mode: "aio",
        redis_tls: NoRedis { enabled: false, verify: false, mtls: false },
        postgres_tls: NoPostgres { enabled: false, ssl_mode: None, mtls: false },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Rest;

    #[tokio::test]
    async fn the_environment_has_the_members_that_clients_read_and_no_address() {
        let rest = Rest::start().await;
        let facts = rest.streamer("GET", "/api/core/settings/env/", Value::Null).await.body;
        assert_eq!((&facts["authenticated"], &facts["env_mode"]), (&json!(true), &json!("aio")));
        assert_eq!((&facts["public_ip"], &facts["ip_lookup_enabled"]), (&Value::Null, &json!(false)));
        assert_eq!(facts["redis_tls"]["enabled"], json!(false));
    }
}
