// icons.js -- small drawings beside words.  They are hidden from readers: the words tell.

const SVG = 'http://www.w3.org/2000/svg';

// Strokes on a field of 16 by 16.
const SHAPES = {
	anvil: ['M2 4.5h12v1.6c0 1.6-2.2 2.4-4.2 2.6v2.1l2 2.2H4.2l2-2.2V8.7C4 8.5 2 7 2 4.5z'],
	passed: ['M3.5 8.5l3 3 6-7'],
	failed: ['M4 4l8 8', 'M12 4l-8 8'],
	canceled: ['M3.5 8h9'],
	queued: ['M8 4v4l2.5 1.5', 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z'],
	running: ['M8 2a6 6 0 0 1 6 6', 'M14 8a6 6 0 0 1-12 0'],
	idle: ['M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z'],
	branch: ['M5 3v10', 'M11 3v3.2C11 9 5 8 5 11', 'M5 3h.01', 'M11 3h.01', 'M5 13h.01'],
	menu: ['M2.5 4.5h11', 'M2.5 8h11', 'M2.5 11.5h11'],
	down: ['M4 6l4 4 4-4'],
	search: ['M7 3a4 4 0 1 1 0 8 4 4 0 0 1 0-8z', 'M10 10l3.5 3.5'],
	close: ['M4 4l8 8', 'M12 4l-8 8'],
};

export function icon(name, className = 'icon') {
	const svg = document.createElementNS(SVG, 'svg');

	svg.setAttribute('viewBox', '0 0 16 16');
	svg.setAttribute('class', className);
	svg.setAttribute('aria-hidden', 'true');
	svg.setAttribute('focusable', 'false');
	for (const d of SHAPES[name]) {
		const path = document.createElementNS(SVG, 'path');

		path.setAttribute('d', d);
		svg.append(path);
	}
	return svg;
}
