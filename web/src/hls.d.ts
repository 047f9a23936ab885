// The smaller build of the library has the types of the whole one.
declare module 'hls.js/light' {
	export * from 'hls.js';
	export { default } from 'hls.js';
}
