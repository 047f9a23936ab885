//! `/api/connect/`: integrations, which receive events.

mod deliveries;
mod edit;
mod integrations;
mod logs;
mod preview;
mod subscriptions;
mod target_test;
#[cfg(test)]
mod tests;
mod view;

use route_frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    let areas = [
        target_test::routes(),
        integrations::routes(),
        subscriptions::routes(),
        deliveries::routes(),
        logs::routes(),
        preview::routes(),
    ];
    areas.into_iter().flatten().collect()
}
