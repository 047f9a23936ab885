//! The routes for players, with the whole table of routes.

mod archive_tests;
mod guide_tests;
mod login_tests;
mod offset_tests;
mod origin_tests;
mod output_tests;
mod panel_tests;
mod recordings_tests;
mod several_guides_tests;
mod still_tests;
mod stream_tests;
