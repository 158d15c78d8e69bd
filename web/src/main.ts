import { mount } from "svelte";
import "./app.css";
import Page from "./Page.svelte";
import Refusal from "./Refusal.svelte";
import { App } from "./state/app.svelte";

// Canvases read their colors when they are painted: those of paper differ.
matchMedia("print").addEventListener("change", () => dispatchEvent(new Event("resize")));

const target = document.getElementById("app")!;
target.replaceChildren();
try {
  mount(Page, { target, props: { app: new App() } });
} catch (error) {
  mount(Refusal, { target, props: { reason: error instanceof Error ? error.message : String(error) } });
}
