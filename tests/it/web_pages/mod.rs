//! Pages of the web interface in a real browser, from the user's side.

pub(crate) mod page;

/// These need a browser.
mod slow {
    mod channels;
    mod datagrams;
    mod direct;
    mod favourites;
    mod formats;
    mod generated;
    mod guide;
    mod guide_links;
    mod hostile;
    mod integrations;
    mod keyboard;
    mod library;
    mod logos;
    mod many;
    mod messages;
    mod nodes;
    mod own_past;
    mod past;
    mod plugins;
    mod recordings;
    mod settings;
    mod setup;
    mod sources;
    mod storage;
    mod titles;
    mod users;
}
