// dom.js -- elements from names, properties and children.  Children that are no nodes become
// text, so that nothing from outside is ever read as markup.

// Set as properties, since their attributes mean something else.
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'readOnly', 'hidden', 'selected',
	'tabIndex', 'noValidate']);

function set(element, name, value) {
	if (value === undefined || value === null || value === false && !PROPERTIES.has(name))
		return;
	if (name.startsWith('on'))
		element.addEventListener(name.slice(2), value);
	else if (PROPERTIES.has(name))
		element[name] = value;
	else
		element.setAttribute(name, value === true ? '' : value);
}

function add(element, children) {
	for (const child of children.flat(Infinity))
		if (child !== null && child !== undefined && child !== false)
			element.append(child);
}

// h('a', {href: 'x', onclick: f}, 'text', [more]): null, undefined and false are left out.
export function h(name, properties = {}, ...children) {
	const element = document.createElement(name);

	for (const [key, value] of Object.entries(properties))
		set(element, key, value);
	add(element, children);
	return element;
}

export function fill(element, ...children) {
	element.replaceChildren();
	add(element, children);
	return element;
}

let ids = 0;

// An id that no other element has.
export function freshId(word) {
	return `${word}-${++ids}`;
}
