// Let the keyboard scroll what is wider than its place.
for (const one of document.querySelectorAll("pre, .table-wrapper, .output, .math"))
  if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
