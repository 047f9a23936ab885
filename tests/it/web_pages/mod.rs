//! Pages of the web interface in a real browser, from the user's side.

mod page;

/// These need a browser.
mod slow {
    mod channels;
    mod direct;
    mod guide;
    mod guide_links;
    mod hostile;
    mod keyboard;
    mod logos;
    mod many;
    mod settings;
    mod setup;
    mod sources;
    mod users;
}
