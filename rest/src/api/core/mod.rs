//! `/api/core/`: settings and state of the whole gateway.

mod audit;
mod environment;
mod health;
mod history;
mod logs;
mod names;
mod nodes;
mod notifications;
mod output_profiles;
mod rehash;
mod settings;
mod settings_check;
mod stream_profiles;
mod system_events;
mod time_zones;
mod trials;
mod user_agents;
mod version;

use route_frame::route::Route;

pub(super) use self::settings::change_setting;

pub(super) fn routes() -> Vec<Route> {
    let routes = [
        audit::routes(),
        environment::routes(),
        health::routes(),
        history::routes(),
        logs::routes(),
        names::routes(),
        nodes::routes(),
        notifications::routes(),
        output_profiles::routes(),
        rehash::routes(),
        settings::routes(),
        settings_check::routes(),
        stream_profiles::routes(),
        system_events::routes(),
        time_zones::routes(),
        trials::routes(),
        user_agents::routes(),
        version::routes(),
    ];
    routes.into_iter().flatten().collect()
}
